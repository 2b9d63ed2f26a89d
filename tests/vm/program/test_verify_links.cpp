// Nodes that name their children: each node is the child of at most one other, so that a tree is no larger
// than its nodes, and depths are the ones in the records.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include <forestvm/core/layouts.hpp>

#include "vm/breach.hpp"

namespace forestvm::test::test_verify_links {
namespace {

/// The way in which a layout's nodes name their children: a split has `left`, and its right child either has a name
/// of its own or follows the left one.
template <class View>
struct Links;

template <>
struct Links<Sparse16View> {
  using Node = Sparse16View::Node;
  static void set_left(Node& node, std::uint32_t, std::uint32_t left) {
    node.left = left;
    node.right = left + 1;
  }
  static void make_leaf(Node& node, std::uint32_t slot) { node = {0, kLeaf, slot, slot}; }
};

template <>
struct Links<Sparse12View> {
  using Node = Sparse12View::Node;
  static void set_left(Node& node, std::uint32_t, std::uint32_t left) { node.left = left; }
  static void make_leaf(Node& node, std::uint32_t slot) { node = {0, kLeaf, slot}; }
};

template <>
struct Links<Sparse8View> {
  using Node = Sparse8View::Node;
  static void set_left(Node& node, std::uint32_t slot, std::uint32_t left) {
    node.word = (node.word & ~Sparse8View::kDistanceMask) | (left - slot);
  }
  static void make_leaf(Node& node, std::uint32_t) { node = {0, kLeaf}; }
};

template <>
struct Links<Sparse4View> {
  using Node = Sparse4View::Node;
  static void set_left(Node& node, std::uint32_t slot, std::uint32_t left) {
    constexpr std::uint32_t kRest = (1u << Sparse4View::kDistanceShift) - 1;
    node.word = (node.word & kRest) | (left - slot) << Sparse4View::kDistanceShift;
  }
  static void make_leaf(Node& node, std::uint32_t) { node.word = kNeverRight; }
};

template <class View>
class VerifyLinks : public testing::Test {};

using SparseViews = testing::Types<Sparse16View, Sparse12View, Sparse8View, Sparse4View>;
TYPED_TEST_SUITE(VerifyLinks, SparseViews);

template <class View>
std::string schedule_of() {
  if (kTakesCodes<View>) return "layout(tree, sparse4); encode(u8)";
  if (std::is_same_v<View, Sparse16View>) return "layout(tree, sparse16)";
  return std::is_same_v<View, Sparse12View> ? "layout(tree, sparse12)" : "layout(tree, sparse8)";
}

/// Returns a tree of 31 nodes.
template <class View>
ProgramParts laid_out() {
  return parts_of(compiled(small_forest({.trees = 1, .depth = 4}), schedule_of<View>()));
}

template <class View>
typename View::Tree view_of(const ProgramParts& parts) {
  const GroupDesc& group = parts.groups[0];
  const std::byte* nodes = parts.nodes.data() + group.node_offset;
  return View::tree({nodes, nullptr, parts.trees.data(), nullptr, 1, 1}, 0);
}

TYPED_TEST(VerifyLinks, RefusesNodesOfTwoParents) {
  using Link = Links<TypeParam>;
  const ProgramParts good = laid_out<TypeParam>();
  const auto view = view_of<TypeParam>(good);
  unsigned tried = 0;
  for (std::uint32_t second = 1; second < good.trees[0].node_count; ++second) {
    if (TypeParam::is_leaf(view, second)) continue;
    for (std::uint32_t first = 0; first < second; ++first) {
      if (TypeParam::is_leaf(view, first) || TypeParam::child(view, first, 0) <= second) continue;
      ProgramParts parts = good;
      Link::set_left(nodes_of<typename Link::Node>(parts, 0)[second], second,
                     TypeParam::child(view, first, 0));
      expect_refusal(parts, "groups section: group 0, tree 0",
                     ("node " + std::to_string(second) + ": a child has another parent too").c_str());
      ++tried;
    }
  }
  EXPECT_GT(tried, 4u);
}

TYPED_TEST(VerifyLinks, RefusesSplitsThatNothingLeadsTo) {
  using Link = Links<TypeParam>;
  const ProgramParts good = laid_out<TypeParam>();
  const auto view = view_of<TypeParam>(good);
  unsigned tried = 0;
  for (std::uint32_t parent = 0; parent < good.trees[0].node_count; ++parent) {
    if (TypeParam::is_leaf(view, parent)) continue;
    const std::uint32_t child = TypeParam::child(view, parent, 0);
    if (TypeParam::is_leaf(view, child)) continue;
    ProgramParts parts = good;
    Link::make_leaf(nodes_of<typename Link::Node>(parts, 0)[parent], parent);
    expect_refusal(parts, "groups section: group 0, tree 0",
                   ("node " + std::to_string(child) + ": no other node leads to it").c_str());
    ++tried;
  }
  EXPECT_EQ(tried, 7u);
}

TYPED_TEST(VerifyLinks, RefusesAnotherDepth) {
  for (const std::uint32_t depth : {0u, 3u, 5u, UINT32_MAX}) {
    ProgramParts parts = laid_out<TypeParam>();
    parts.trees[0].depth = depth;
    expect_refusal(parts, "groups section: group 0, tree 0",
                   ("its deepest leaf is at depth 4, its record says " + std::to_string(depth)).c_str());
  }
}

TYPED_TEST(VerifyLinks, RefusesLeavesAside) {
  if (TypeParam::kLeavesAside) return;
  const auto refuse = [](auto damage) {
    ProgramParts parts = laid_out<TypeParam>();
    damage(parts.trees[0]);
    expect_refusal(parts, "groups section: group 0, tree 0", "it has leaves aside");
  };
  refuse([](TreeDesc& tree) { tree.leaf_count = 1; });
  refuse([](TreeDesc& tree) { tree.first_leaf = 1; });
}

/// Levels are counted in bytes if the tree's record says that they fit: no depth may be confused with
/// another.
TYPED_TEST(VerifyLinks, KnowsEveryDepth) {
  for (const std::uint32_t depth : {1u, 254u, 255u, 256u, 511u, 600u}) {
    Model model = small_forest({.trees = 1, .depth = 1});
    model.trees[0] = chain_of(depth);
    const ProgramParts good = parts_of(compiled(model, schedule_of<TypeParam>()));
    ASSERT_EQ(good.trees[0].depth, depth);
    for (const std::uint32_t other : {depth - 1, depth + 1, depth + 256, depth % 256, depth % 255}) {
      if (other == depth) continue;
      ProgramParts parts = good;
      parts.trees[0].depth = other;
      expect_refusal(parts, "groups section: group 0, tree 0",
                     ("its deepest leaf is at depth " + std::to_string(depth)).c_str());
    }
  }
}

/// Nodes that name both children could name one node twice: forty such nodes in a row would make a tree of 2^40
/// leaves.
TEST(VerifySparse16, RefusesTheSameChildTwice) {
  ProgramParts parts = laid_out<Sparse16View>();
  auto* nodes = nodes_of<Sparse16View::Node>(parts, 0);
  for (std::uint32_t slot = 0; slot + 1 < parts.trees[0].node_count; ++slot)
    nodes[slot] = {0, 0, slot + 1, slot + 1};
  expect_refusal(parts, "groups section: group 0, tree 0", "node 0: a child has another parent too");
}

TEST(VerifySparseTiles, RefusesTilesOfTwoParents) {
  using Node = SparseTilesView<4>::Node;
  const ProgramParts good = parts_of(
      compiled(small_forest({.trees = 1, .depth = 6}), "tileTree(tree, 3, uniform); layout(tree, sparse)"));
  ProgramParts parts = good;
  Node* const tiles = nodes_of<Node>(parts, 0);
  // The root's four children are tiles; the first names the last as its own first child.
  ASSERT_EQ(tiles[0].leaf_exits, 0);
  ASSERT_EQ(tiles[0].first_tile, 1u);
  tiles[1].first_tile = 4;
  expect_refusal(parts, "groups section: group 0, tree 0", "node 1: a child has another parent too");
  // A tile that leads only to leaves has no children.
  parts = good;
  Node* const others = nodes_of<Node>(parts, 0);
  const std::uint32_t child = others[1].first_tile;
  others[1].leaf_exits = 0xf;
  others[1].first_leaf = 0;
  expect_refusal(parts, "groups section: group 0, tree 0",
                 ("node " + std::to_string(child) + ": no other node leads to it").c_str());
}

}  // namespace
}  // namespace forestvm::test::test_verify_links
