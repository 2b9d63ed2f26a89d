// ONNX Runtime's own answers: the reference predictor on every ONNX file of tests/data and of the zoo.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>

#include <forestvm/load.hpp>
#include <forestvm/reference.hpp>

#include "support/model_folders.hpp"
#include "support/npy.hpp"

namespace forestvm::test {
namespace {

namespace fs = std::filesystem;
using support::ModelFile;
using support::zoo;

fs::path repository() { return fs::path(FORESTVM_TEST_DATA) / "onnx"; }

template <class Value>
Result<Reference> predict_rows(const Model& model, const fs::path& file) {
  const auto rows = support::read_npy<Value>(file);
  return reference_predict(model, std::span<const Value>(rows.data), rows.rows());
}

Result<Reference> predict(const Model& model, const fs::path& folder) {
  const fs::path file = folder / "rows.npy";
  return support::holds<double>(file) ? predict_rows<double>(model, file) : predict_rows<float>(model, file);
}

/// Compares with a bound that is relative above 1. With a bound of 0 the values must be equal once they are float32.
void compare(const Reference& predicted, const fs::path& answers, double bound) {
  const auto expected = support::read_npy<float>(answers);
  ASSERT_EQ(predicted.value.size(), expected.data.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < expected.data.size(); ++i) {
    const auto answer = static_cast<double>(expected.data[i]);
    const auto value = static_cast<double>(static_cast<float>(predicted.value[i]));
    if (!(std::abs(value - answer) <= bound * std::max(1.0, std::abs(answer)))) ++wrong;
  }
  EXPECT_EQ(wrong, 0u) << "values of " << expected.data.size() << " differ";
}

/// Sums of the repository's models are exact in float32, so that only exponentials leave room.
TEST(OnnxAnswers, Repository) {
  std::size_t read = 0;
  for (const ModelFile& file : support::onnx_files(repository())) {
    SCOPED_TRACE(file.name);
    const Result<Model> model = load_model(file.path.string());
    ASSERT_TRUE(model.ok()) << model.error().text();
    const fs::path folder = file.path.parent_path();
    const Result<Reference> predicted = predict(*model, folder);
    ASSERT_TRUE(predicted.ok()) << predicted.error().text();
    compare(*predicted, folder / "expected.npy", model->transform == Transform::Identity ? 0 : 3e-7);
    ++read;
    if (!fs::exists(folder / "expected_label.npy")) continue;
    const auto labels = support::read_npy<std::int64_t>(folder / "expected_label.npy");
    ASSERT_EQ(predicted->label.size(), labels.data.size());
    // The answers hold the numbers of classes, or the classes' labels if these are numbers.
    const bool numbers = !model->class_labels.empty() &&
                         std::isdigit(static_cast<unsigned char>(model->class_labels[0][0])) != 0;
    for (std::size_t i = 0; i < labels.data.size(); ++i) {
      const std::int64_t label = predicted->label[i];
      EXPECT_EQ(numbers ? std::stoll(model->class_labels[static_cast<std::size_t>(label)]) : label,
                labels.data[i])
          << "row " << i;
    }
  }
  EXPECT_EQ(read, 41u);
}

double tolerance_of(const fs::path& folder) {
  std::ifstream file(folder / "meta.json");
  const std::string meta(std::istreambuf_iterator<char>(file), {});
  const std::size_t at = meta.find("\"tolerance\": ");
  return at == std::string::npos ? 0 : std::stod(meta.substr(at + 13));
}

TEST(Zoo, Onnx) {
  if (!fs::exists(zoo() / "formats")) GTEST_SKIP() << "no zoo at " << zoo() << ": set FORESTVM_ZOO";
  const std::map<std::string, std::string> refusals = {
      {"sk_iforest_onnx", "node \"node_sample0_Gather\" (Gather): an operation that is not read"},
  };
  std::size_t read = 0;
  for (const ModelFile& file : support::onnx_files(zoo() / "formats")) {
    SCOPED_TRACE(file.name);
    const Result<Model> model = load_model(file.path.string());
    const auto refusal = refusals.find(file.name);
    ASSERT_EQ(model.ok(), refusal == refusals.end()) << (model.ok() ? "not refused" : model.error().text());
    if (!model.ok()) {
      EXPECT_EQ(model.error().text(), refusal->second);
      continue;
    }
    const fs::path folder = file.path.parent_path();
    const Result<Reference> predicted = predict(*model, folder);
    ASSERT_TRUE(predicted.ok()) << predicted.error().text();
    const bool listed = file.path.filename() == "model_v5.onnx";
    compare(*predicted, folder / (listed ? "expected_onnx_v5.npy" : "expected_onnx.npy"),
            tolerance_of(folder));
    ++read;
  }
  EXPECT_EQ(read, 18u);
}

}  // namespace
}  // namespace forestvm::test
