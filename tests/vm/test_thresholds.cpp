// The thresholds that are read out of a program: the same whatever the layout, as many as were counted when
// the program was made.
#include <gtest/gtest.h>

#include <algorithm>

#include "small_program.hpp"

namespace forestvm::test {
namespace {

TEST(Thresholds, AreTheModelsInEveryLayout) {
  for (const RichCase& rich : rich_cases()) {
    SCOPED_TRACE(rich.schedule);
    const Model model = forest_of(rich);
    const Program program = compiled(model, rich.schedule, rich.contract);
    const auto read = thresholds(program);
    ASSERT_EQ(read.size(), model.num_features);
    for (std::size_t feature = 0; feature < read.size(); ++feature) {
      EXPECT_EQ(read[feature].size(), program.section_Thresholds()[feature]);
      EXPECT_TRUE(std::is_sorted(read[feature].begin(), read[feature].end()));
    }
    for (const Tree& tree : model.trees)
      for (const Node& node : tree.nodes) {
        if (node.kind != NodeKind::Less) continue;
        EXPECT_TRUE(std::binary_search(read[node.feature].begin(), read[node.feature].end(),
                                       static_cast<float>(node.threshold)));
      }
  }
}

}  // namespace
}  // namespace forestvm::test
