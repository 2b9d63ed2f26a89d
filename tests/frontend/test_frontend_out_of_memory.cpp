// Readers of models when memory runs out: each allocation of a load fails in turn, once or from then on. The load
// reports that memory ran out, and never that the file is damaged.
#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <optional>
#include <string>

#include <forestvm/load.hpp>

#include "support/allocations.hpp"
#include "support/test_name.hpp"

namespace forestvm::test::test_frontend_out_of_memory {
namespace {

using support::Failing;

class FrontendOutOfMemory : public testing::TestWithParam<const char*> {};

TEST_P(FrontendOutOfMemory, IsReported) {
  const std::string path = std::string(FORESTVM_TEST_DATA "/") + GetParam();
  ASSERT_TRUE(load_model(path).ok()) << path;
  for (const Failing failing : {Failing::Once, Failing::FromThenOn})
    for (std::int64_t more = 0, failed = 1; failed != 0; more += failing == Failing::Once ? 1 : 7) {
      support::fail_allocations_after(more, failing);
      std::optional<Result<Model>> model;
      try {
        model.emplace(load_model(path));
      } catch (const std::bad_alloc&) {  // there is no memory for an Error either
      }
      failed = support::stop_failing() ? 1 : 0;
      ASSERT_TRUE(model || failing == Failing::FromThenOn) << more;
      if (!model || model->ok()) continue;
      ASSERT_EQ(model->error().code, ErrorCode::Environment) << more << ": " << model->error().text();
      ASSERT_NE(model->error().text().find("memory"), std::string::npos)
          << more << ": " << model->error().text();
    }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, FrontendOutOfMemory,
    testing::Values("catboost/1.2.10_counters/model.cbm", "catboost/1.2.10_classes/model.cbm",
                    "diabetes/model.json", "lightgbm/4.7.0_pandas/model.json",
                    "lightgbm/4.7.0_pandas/model.txt", "onnx/argmax/model.onnx",
                    "pmml/drawn_votes/model.pmml", "skops/1.1_ada_logarithms/model.skops",
                    "treelite/3.9.1_categories/model.treelite", "ydf/0.16.1_isolation/model"),
    [](const auto& test) { return support::test_name(test.param); });

}  // namespace
}  // namespace forestvm::test::test_frontend_out_of_memory
