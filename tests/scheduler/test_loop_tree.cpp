// The loop tree: the effects of tile, split and reorder, the ranges that follow, and the meaning of names.
#include "scheduler/loop_tree.hpp"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/directives/apply.hpp"

namespace forestvm::test::test_loop_tree {
namespace {

using namespace scheduler;

/// Returns the nest in one line: `b0(tree(b1))`; adjacent loops are separated by a space.
std::string shape(const LoopTree& tree, const std::vector<LoopId>& loops) {
  std::string text;
  for (const LoopId loop : loops) {
    text += (text.empty() ? "" : " ") + tree[loop].name;
    if (!tree[loop].children.empty()) text += "(" + shape(tree, tree[loop].children) + ")";
  }
  return text;
}
std::string shape(const LoopTree& tree) { return shape(tree, tree.roots()); }

/// Applies a schedule's text; returns an error's message, or an empty text.
std::string apply_all(LoopTree& tree, std::string_view text) {
  const Result<Schedule> schedule = parse_schedule(text);
  if (!schedule.ok()) return schedule.error().text();
  for (std::size_t i = 0; i < schedule->directives.size(); ++i)
    if (const Result<void> done = apply(tree, {schedule->directives[i], i}); !done.ok())
      return done.error().message;
  return "";
}

LoopTree tree_of(std::string_view text, std::uint32_t trees = 100) {
  LoopTree tree(trees);
  EXPECT_EQ(apply_all(tree, text), "") << text;
  return tree;
}

std::string error_of(std::string_view text, std::uint32_t trees = 100) {
  LoopTree tree(trees);
  return apply_all(tree, text);
}

LoopId only(const LoopTree& tree, const std::string& name) {
  const auto loops = tree.find(name);
  EXPECT_TRUE(loops.ok()) << name;
  if (!loops.ok()) return 0;
  EXPECT_EQ(loops->size(), 1u) << name;
  return loops->front();
}

using Bounds = std::pair<std::uint32_t, std::uint32_t>;

TEST(LoopTree, StartsAsRowsThenTrees) {
  const LoopTree tree(100);
  EXPECT_EQ(shape(tree), "batch(tree)");
  EXPECT_EQ(tree.extent(only(tree, "batch")), kAll);
  EXPECT_EQ(tree.extent(only(tree, "tree")), 100u);
  EXPECT_EQ(tree.tree_bounds(only(tree, "tree")), Bounds(0, 100));
}

TEST(LoopTree, TileMakesTwoLoops) {
  const LoopTree tree = tree_of("tile(tree, t0, t1, 16)");
  EXPECT_EQ(shape(tree), "batch(t0(t1))");
  EXPECT_EQ(tree.iterations(only(tree, "t0")), 7u);
  EXPECT_EQ(tree.extent(only(tree, "t0")), 100u);
  EXPECT_EQ(tree.extent(only(tree, "t1")), 16u);
  EXPECT_EQ(tree[only(tree, "t1")].source, only(tree, "t0"));
}

TEST(LoopTree, TilesOfTilesStepThroughEachOther) {
  const LoopTree outer = tree_of("tile(tree, t0, t1, 4); tile(t0, t2, t3, 5)");
  EXPECT_EQ(shape(outer), "batch(t2(t3(t1)))");
  EXPECT_EQ(outer[only(outer, "t2")].step, 20u);
  EXPECT_EQ(outer.iterations(only(outer, "t2")), 5u);
  EXPECT_EQ(outer.iterations(only(outer, "t3")), 5u);
  EXPECT_EQ(outer[only(outer, "t1")].source, only(outer, "t3"));
  const LoopTree inner = tree_of("tile(tree, t0, t1, 20); tile(t1, t2, t3, 4)");
  EXPECT_EQ(shape(inner), "batch(t0(t2(t3)))");
  EXPECT_EQ(inner[only(inner, "t0")].step, 20u);
  EXPECT_EQ(inner[only(inner, "t2")].source, only(inner, "t0"));
  EXPECT_EQ(inner.iterations(only(inner, "t2")), 5u);
  EXPECT_EQ(inner.iterations(only(inner, "t3")), 4u);
}

TEST(LoopTree, SizesBeyondTheRangeAreCut) {
  const LoopTree tree =
      tree_of("tile(tree, t0, t1, 1000); tile(batch, b0, b1, 4294967295); tile(b1, b2, b3, 9)");
  EXPECT_EQ(tree.iterations(only(tree, "t0")), 1u);
  EXPECT_EQ(tree.extent(only(tree, "t1")), 100u);
  EXPECT_EQ(tree.iterations(only(tree, "b0")), 1u);
  EXPECT_EQ(tree[only(tree, "b0")].step, kAll);
  EXPECT_EQ(tree.iterations(only(tree, "b3")), 9u);
  const LoopTree nested =
      tree_of("tile(batch, b0, b1, 4294967295); tile(b0, b2, b3, 4294967295); tile(b2, b4, b5, 4294967295)");
  EXPECT_EQ(nested[only(nested, "b4")].step, kAll);
  EXPECT_EQ(nested.iterations(only(nested, "b4")), 1u);
}

TEST(LoopTree, TheSizeNamesHaveTheirValues) {
  const LoopTree tree = tree_of("tile(tree, t0, t1, N_TREES); tile(batch, b0, b1, BATCH)");
  EXPECT_EQ(tree[only(tree, "t0")].step, 100u);
  EXPECT_EQ(tree[only(tree, "b0")].step, kAll);
  const LoopTree none = tree_of("tile(tree, t0, t1, N_TREES)", 0);
  EXPECT_EQ(none.iterations(only(none, "t0")), 0u);
}

TEST(LoopTree, SplitCopiesWhatIsInside) {
  const LoopTree tree = tree_of("reorder(tree, batch); split(tree, ta, tb, 30)");
  EXPECT_EQ(shape(tree), "ta(batch) tb(batch)");
  EXPECT_EQ(tree.extent(only(tree, "ta")), 30u);
  EXPECT_EQ(tree.extent(only(tree, "tb")), 70u);
  EXPECT_EQ(tree.tree_bounds(only(tree, "ta")), Bounds(0, 30));
  EXPECT_EQ(tree.tree_bounds(only(tree, "tb")), Bounds(30, 100));
  EXPECT_EQ(tree.find("batch")->size(), 2u);
  EXPECT_TRUE(tree.inside(only(tree, "ta.batch"), only(tree, "ta")));
  EXPECT_TRUE(tree.inside(only(tree, "tb.batch"), only(tree, "tb")));
}

TEST(LoopTree, SplitOfABlockedLoopCutsAtIterations) {
  const LoopTree tree = tree_of("tile(tree, t0, t1, 16); split(t0, ta, tb, 2); split(tb, tc, td, 3)");
  EXPECT_EQ(shape(tree), "batch(ta(t1) tc(t1) td(t1))");
  EXPECT_EQ(tree.tree_bounds(only(tree, "ta")), Bounds(0, 32));
  EXPECT_EQ(tree.tree_bounds(only(tree, "tc")), Bounds(32, 80));
  EXPECT_EQ(tree.tree_bounds(only(tree, "td")), Bounds(80, 100));
  EXPECT_EQ(tree.tree_bounds(only(tree, "td.t1")), Bounds(80, 100));
  EXPECT_EQ(tree.iterations(only(tree, "tc")), 3u);
  EXPECT_EQ(tree.iterations(only(tree, "td")), 2u);
}

TEST(LoopTree, SplitPastTheEndLeavesAnEmptyPart) {
  const LoopTree tree = tree_of("split(tree, ta, tb, 1000)");
  EXPECT_EQ(tree.tree_bounds(only(tree, "ta")), Bounds(0, 100));
  EXPECT_EQ(tree.tree_bounds(only(tree, "tb")), Bounds(100, 100));
  EXPECT_EQ(tree.iterations(only(tree, "tb")), 0u);
}

TEST(LoopTree, SplitOfAnInnerTileKnowsItsSizes) {
  const LoopTree tree = tree_of("tile(tree, t0, t1, 16); split(t1, ta, tb, 12)");
  EXPECT_EQ(shape(tree), "batch(t0(ta tb))");
  EXPECT_EQ(tree.extent(only(tree, "ta")), 12u);
  EXPECT_EQ(tree.extent(only(tree, "tb")), 4u);
  EXPECT_EQ(tree.tree_bounds(only(tree, "tb")), Bounds(0, 100));  // the bounds of any block
}

TEST(LoopTree, TileOfAPartStaysInIt) {
  const LoopTree tree = tree_of("split(tree, ta, tb, 30); tile(tb, t0, t1, 16)");
  EXPECT_EQ(tree.tree_bounds(only(tree, "t1")), Bounds(30, 100));
  EXPECT_EQ(tree.iterations(only(tree, "t0")), 5u);
  EXPECT_EQ(tree.extent(only(tree, "t1")), 16u);
}

TEST(LoopTree, CopiesAreTiledTogetherOrAlone) {
  const LoopTree both = tree_of("reorder(tree, batch); split(tree, ta, tb, 30); tile(batch, b0, b1, 8)");
  EXPECT_EQ(shape(both), "ta(b0(b1)) tb(b0(b1))");
  const LoopTree one = tree_of("reorder(tree, batch); split(tree, ta, tb, 30); tile(ta.batch, b0, b1, 8)");
  EXPECT_EQ(shape(one), "ta(b0(b1)) tb(batch)");
  EXPECT_EQ(only(one, "batch"), only(one, "tb.batch"));
}

TEST(LoopTree, SourcesOfCopiesAreTheCopies) {
  const LoopTree tree = tree_of("tile(tree, t0, t1, 4); reorder(t0, t1, batch); split(t0, ta, tb, 2)");
  EXPECT_EQ(tree[only(tree, "tb.t1")].source, only(tree, "tb"));
  EXPECT_EQ(tree[only(tree, "ta.t1")].source, only(tree, "ta"));
  const LoopTree rows = tree_of("tile(batch, b0, b1, 4); reorder(b0, tree, b1); split(tree, ta, tb, 2)");
  EXPECT_EQ(rows[only(rows, "tb.b1")].source, only(rows, "b0"));
}

TEST(LoopTree, ReorderPermutesAndLeavesTheUnnamed) {
  EXPECT_EQ(shape(tree_of("tile(batch, b0, b1, 64); reorder(b0, tree, b1)")), "b0(tree(b1))");
  const std::string tiles = "tile(batch, b0, b1, 8); tile(tree, t0, t1, 4); ";
  EXPECT_EQ(shape(tree_of(tiles + "reorder(t0, b1)")), "b0(t0(b1(t1)))");
  EXPECT_EQ(shape(tree_of(tiles + "reorder(b0, t0, b1, t1); reorder(t0, b0)")), "t0(b0(b1(t1)))");
  EXPECT_EQ(shape(tree_of(tiles + "reorder(t0, t1, b0, b1)")), "t0(t1(b0(b1)))");
  EXPECT_EQ(shape(tree_of(tiles + "reorder(t0, b0, b1, t1); reorder(t1, b1)")), "t0(b0(t1(b1)))");
}

TEST(LoopTree, ReorderOfTheEndsLeavesTheMiddle) {
  LoopTree tree = tree_of("tile(tree, t0, t1, 4); reorder(t0, batch, t1); tile(batch, b0, b1, 8)");
  EXPECT_EQ(shape(tree), "t0(b0(b1(t1)))");
  EXPECT_EQ(apply_all(tree, "reorder(t1, b0)"),
            "loop 'b1' steps through an iteration of 'b0' and cannot be outside it");
  EXPECT_EQ(apply_all(tree, "reorder(b0, t0)"), "");
  EXPECT_EQ(shape(tree), "b0(t0(b1(t1)))");
}

TEST(LoopTree, ReorderOfAPartLeavesTheOther) {
  EXPECT_EQ(shape(tree_of("split(batch, ba, bb, 8); reorder(ba, tree)")), "ba(tree) bb(tree)");
  EXPECT_EQ(shape(tree_of("split(batch, ba, bb, 8); reorder(ba.tree, ba)")), "tree(ba) bb(tree)");
  EXPECT_EQ(error_of("split(batch, ba, bb, 8); reorder(tree, ba)"),
            "loops 'tree' and 'ba' are not nested in each other");
}

TEST(LoopTree, ReorderOfCopiesWorksOnEach) {
  EXPECT_EQ(shape(tree_of("tile(tree, t0, t1, 4); split(batch, ba, bb, 8); tile(t1, t2, t3, 2);"
                          "reorder(t0, t2, t3)")),
            "ba(t0(t2(t3))) bb(t0(t2(t3)))");
  EXPECT_EQ(shape(tree_of("tile(batch, b0, b1, 4); reorder(tree, b0, b1); split(tree, ta, tb, 8);"
                          "tile(ta, tc, td, 2); reorder(b0, b1)")),
            "tc(td(b0(b1))) tb(b0(b1))");
}

TEST(LoopTree, RetiredNamesSayWhatBecameOfThem) {
  EXPECT_EQ(error_of("tile(batch, b0, b1, 64); parallel(batch)"),
            "loop 'batch' became b0 and b1 by tile(batch, b0, b1, 64)");
  EXPECT_EQ(error_of("split(tree, ta, tb, 3); unroll(tree)"),
            "loop 'tree' became ta and tb by split(tree, ta, tb, 3)");
  EXPECT_EQ(error_of("parallel(rows)"), "there is no loop 'rows'");
  EXPECT_EQ(error_of("parallel(tree.batch)"), "there is no loop 'tree.batch'");
  EXPECT_EQ(
      error_of("reorder(tree, batch); split(tree, ta, tb, 2); tile(ta.batch, b0, b1, 8); parallel(ta.batch)"),
      "loop 'ta.batch' became b0 and b1 by tile(ta.batch, b0, b1, 8)");
}

TEST(LoopTree, NamesAreTakenForGood) {
  EXPECT_EQ(error_of("tile(batch, b0, tree, 8)"), "the name 'tree' is taken");
  EXPECT_EQ(error_of("tile(batch, b0, b1, 8); tile(b1, batch, b2, 4)"), "the name 'batch' is taken");
  EXPECT_EQ(error_of("tile(batch, batch, b1, 8)"), "the name 'batch' is taken");
  EXPECT_EQ(error_of("split(tree, t, t, 8)"), "both parts have the same name 't'");
}

TEST(LoopTree, ALayoutReachesWhatCameOfALoop) {
  const LoopTree tree = tree_of("split(tree, ta, tb, 8); tile(tb, t0, t1, 4); layout(tree, sparse)");
  for (const char* name : {"ta", "t0", "t1"}) EXPECT_TRUE(tree[only(tree, name)].layout) << name;
}

TEST(LoopTree, ALayoutReachesCopiesThatWereTiledAlone) {
  const LoopTree tree = tree_of("split(batch, ba, bb, 8); tile(ba.tree, t0, t1, 4); layout(tree, sparse)");
  for (const char* name : {"t0", "t1", "tree"}) EXPECT_TRUE(tree[only(tree, name)].layout) << name;
}

TEST(LoopTree, AsksOfALoopAreCopiedWithIt) {
  const LoopTree tree = tree_of("reorder(tree, batch); parallel(batch); split(tree, ta, tb, 8)");
  EXPECT_TRUE(tree[only(tree, "ta.batch")].parallel);
  EXPECT_TRUE(tree[only(tree, "tb.batch")].parallel);
}

}  // namespace
}  // namespace forestvm::test::test_loop_tree
