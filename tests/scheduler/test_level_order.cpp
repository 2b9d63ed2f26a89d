// The slots of the array layout for rank-coded rows: tests, leaves in the last level, and the slots above a
// leaf that is repeated there.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/core/layout/array4.hpp>

#include "support/small_models.hpp"

namespace forestvm::test_level_order {
namespace {

using support::leaf;
using support::split;

using Words = std::vector<std::uint32_t>;

std::uint32_t test_of(std::uint32_t code, std::uint32_t column) { return code << 24 | column; }

std::uint32_t output(float value) { return std::bit_cast<std::uint32_t>(value); }

constexpr std::uint32_t kRepeated = 0xff000000;

/// Returns the words of each tree.
std::vector<Words> laid_out(const std::vector<Tree>& trees, const std::string& schedule) {
  const auto compiled = compile(support::model_of(trees), *parse_schedule(schedule));
  EXPECT_TRUE(compiled.ok()) << (compiled.ok() ? "" : compiled.error().text());
  if (!compiled.ok()) return {};
  const Program& program = compiled->program;
  EXPECT_EQ(program.groups()[0].layout, Layout::Array4);
  std::vector<Words> words;
  for (const TreeDesc& tree : program.trees()) {
    words.emplace_back(tree.node_count);
    std::memcpy(words.back().data(), program.nodes().data() + tree.first_node * sizeof(std::uint32_t),
                tree.node_count * sizeof(std::uint32_t));
  }
  return words;
}

/// Returns a tree of the tests x0 < 1, x1 < 2 and x0 < 3, with the codes of each feature's thresholds in
/// order.
Tree three_tests() { return split(0, 3, split(1, 2, leaf(10), split(0, 1, leaf(11), leaf(12))), leaf(13)); }

TEST(LevelOrder, LeavesAreRepeatedInTheLastLevel) {
  const Words expected{test_of(1, 0), test_of(0, 1), kRepeated,  kRepeated,  test_of(0, 0),
                       kRepeated,     kRepeated,     output(10), output(10), output(11),
                       output(12),    output(13),    output(13), output(13), output(13)};
  for (const char* schedule : {"encode(u8); layout(tree, array)", "layout(tree, array4)"})
    EXPECT_EQ(laid_out({three_tests()}, schedule), std::vector<Words>{expected}) << schedule;
}

TEST(LevelOrder, ALeafAloneIsPaddedIfItsWalksAreUnrolled) {
  const std::vector<Tree> trees{leaf(7), split(0, 1, leaf(8), leaf(9))};
  const Words two{test_of(0, 0), output(8), output(9)};
  EXPECT_EQ(laid_out(trees, "layout(tree, array4)"), (std::vector<Words>{{output(7)}, two}));
  EXPECT_EQ(laid_out(trees, "layout(tree, array4); unrollWalk(tree)"),
            (std::vector<Words>{{kRepeated, output(7), output(7)}, two}));
}

TEST(LevelOrder, TreesThatAreALeafHaveNoColumn) {
  EXPECT_EQ(laid_out({leaf(7), leaf(8)}, "layout(tree, array4); unrollWalk(tree)"),
            (std::vector<Words>{{output(7)}, {output(8)}}));
}

}  // namespace
}  // namespace forestvm::test_level_order
