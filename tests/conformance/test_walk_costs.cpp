// The predictor of walk costs: the program in the library is what compiling the trained forest beside it gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include <forestvm/compile.hpp>
#include <forestvm/load.hpp>

#include "scheduler/choose/walk_costs.hpp"
#include "scheduler/choose/walk_features.hpp"

namespace forestvm::test::test_walk_costs {
namespace {

Program embedded() { return Program::from_bytes(scheduler::walk_costs_image()).value(); }

/// Fails after a change of the compiler or of the program format: `bench/walks/train --compile` then writes the program
/// anew.
TEST(WalkCosts, AreCompiledFromTheTrainedForest) {
  const Program program = embedded();
  const auto model = load_model(FORESTVM_SOURCE_DIR "/scheduler/choose/walk_costs.ubj");
  ASSERT_TRUE(model.ok()) << model.error().text();
  const auto schedule = parse_schedule(program.text(StringId::Schedule));
  ASSERT_TRUE(schedule.ok()) << schedule.error().text();
  const auto compiled = compile(*model, *schedule);
  ASSERT_TRUE(compiled.ok()) << compiled.error().text();
  const auto mine = program.image(), fresh = compiled->program.image();
  EXPECT_TRUE(std::equal(mine.begin(), mine.end(), fresh.begin(), fresh.end()));
}

/// The forest was trained on the features that the scheduler computes, in their order.
TEST(WalkCosts, ReadTheSchedulersFeatures) {
  const Program program = embedded();
  ASSERT_EQ(program.meta().num_features, scheduler::kWalkFeatures);
  for (std::uint32_t i = 0; i < scheduler::kWalkFeatures; ++i)
    EXPECT_EQ(program.feature_name(i), scheduler::kWalkFeatureNames[i]);
}

}  // namespace
}  // namespace forestvm::test::test_walk_costs
