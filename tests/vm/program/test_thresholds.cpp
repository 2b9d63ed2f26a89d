// The thresholds that are read out of a program: equal for every layout, and in the number that was counted
// when the program was made.
#include <gtest/gtest.h>

#include <algorithm>

#include <forestvm/internal/program_tools.hpp>

#include "vm/small_program.hpp"

namespace forestvm::test::test_thresholds {
namespace {

TEST(Thresholds, AreTheModelsInEveryLayout) {
  for (const RichCase& rich : rich_cases()) {
    SCOPED_TRACE(rich.schedule);
    const Model model = forest_of(rich);
    const Program program = compiled(model, rich.schedule, rich.contract);
    const auto read = thresholds(program);
    std::vector<FeatureCount> counted;
    for (const auto& [feature, values] : read) {
      counted.push_back({feature, static_cast<std::uint32_t>(values.size())});
      EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
    }
    const auto told = program.thresholds();
    EXPECT_EQ(counted, std::vector<FeatureCount>(told.begin(), told.end()));
    for (const Tree& tree : model.trees)
      for (const Node& node : tree.nodes) {
        if (node.kind != NodeKind::Less) continue;
        const std::vector<double>& values = read.at(node.feature);
        EXPECT_TRUE(std::binary_search(values.begin(), values.end(), node.threshold)) << node.threshold;
      }
  }
}

}  // namespace
}  // namespace forestvm::test::test_thresholds
