// Compiled ONNX models on rows of the file's own type: float64 values and labels equal the reference predictor's, which
// tests/frontend/test_onnx_answers.cpp compares with ONNX Runtime's.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/reference.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>

#include "support/floats.hpp"
#include "support/model_folders.hpp"
#include "support/npy.hpp"

namespace forestvm::test::test_onnx {
namespace {

namespace fs = std::filesystem;

template <class Number>
void compare(const Model& model, const Predictor& predictor, const fs::path& file, RowType type) {
  const auto rows = support::read_npy<Number>(file);
  const auto expected = reference_predict(model, std::span<const Number>(rows.data), rows.rows());
  ASSERT_TRUE(expected.ok()) << expected.error().text();
  const auto context = predictor.make_context();
  const RowBlock block{rows.data.data(), rows.rows(), rows.columns(), type};
  std::vector<double> value(expected->value.size());
  ASSERT_TRUE(predictor.predict_wide(*context, block, OutputKind::Value, value.data()).ok());
  std::int64_t worst = 0;
  for (std::size_t i = 0; i < value.size(); ++i)
    worst = std::max(worst, support::ulps(value[i], static_cast<double>(expected->value[i])));
  EXPECT_LE(worst, 3) << "units in the last place";
  if (model.class_rule == ClassRule::None) return;
  std::vector<std::int64_t> labels(expected->label.size());
  ASSERT_TRUE(predictor.predict_class(*context, block, labels.data()).ok());
  EXPECT_EQ(labels, expected->label);
}

TEST(OnnxModels, RowsOfTheirOwnTypeAndLabels) {
  std::size_t wide = 0;
  for (const support::ModelFile& file : support::onnx_files(fs::path(FORESTVM_TEST_DATA) / "onnx")) {
    const Result<Model> model = load_model(file.path.string());
    ASSERT_TRUE(model.ok()) << model.error().text();
    for (const Schedule& schedule : {Schedule(), automatic_schedule(*model)}) {
      SCOPED_TRACE(file.name + ": " + print(schedule));
      const Result<Compiled> compiled = compile(*model, schedule);
      ASSERT_TRUE(compiled.ok()) << compiled.error().text();
      const auto predictor = host_backend(compiled->program, {2, "auto"});
      ASSERT_TRUE(predictor.ok()) << predictor.error().text();
      const fs::path rows = file.path.parent_path() / "rows.npy";
      if (support::holds<double>(rows)) {
        compare<double>(*model, **predictor, rows, RowType::Float64);
        ++wide;
      } else {
        compare<float>(*model, **predictor, rows, RowType::Float32);
      }
    }
  }
  EXPECT_EQ(wide, 16u);
}

}  // namespace
}  // namespace forestvm::test::test_onnx
