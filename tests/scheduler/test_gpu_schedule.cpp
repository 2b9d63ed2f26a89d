// The facts about a model by which the schedule `gpu` chooses.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/named_schedules.hpp>

#include "scheduler/choose/model_schedules.hpp"
#include "support/small_models.hpp"

namespace forestvm::scheduler::test_gpu_schedule {
namespace {

/// Returns a tree of as many levels, whose splits test features 1, 2, ..., `features` in turns, from the `next` one on.
Tree complete_tree(unsigned levels, std::uint32_t features, std::uint32_t& next) {
  if (levels == 0) return support::leaf(0.5);
  const std::uint32_t feature = 1 + next++ % features;
  const Tree left = complete_tree(levels - 1, features, next);
  return support::split(feature, 0.5, left, complete_tree(levels - 1, features, next));
}

/// A block of 256 rows has room for 160 columns of codes, which the splits of this model read. None reads feature 0.
TEST(GpuSchedule, TakesNoColumnsForSlotsThatNoWalkReaches) {
  constexpr std::uint32_t kColumns = 160;
  std::vector<Tree> trees;
  std::uint32_t next = 0;
  for (int t = 0; t < 1000; ++t) trees.push_back(complete_tree(6, kColumns, next));
  Model model = support::model_of(trees);
  model.num_features = kColumns + 1;
  const std::string without = print(gpu(model, Contract::Trainer));
  EXPECT_NE(without.find("tile(batch, b0, b1, 256)"), std::string::npos) << without;
  EXPECT_NE(without.find("encode(u8)"), std::string::npos) << without;
  Node unused;
  unused.kind = NodeKind::Unused;
  model.trees[0].nodes.push_back(unused);
  EXPECT_EQ(print(gpu(model, Contract::Trainer)), without);
}

}  // namespace
}  // namespace forestvm::scheduler::test_gpu_schedule
