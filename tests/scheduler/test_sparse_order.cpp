// The order of nodes in sparse layouts: level by level, or along the likeliest walks.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/core/layout/sparse4.hpp>

#include "scheduler/layouts/sparse.hpp"
#include "support/small_models.hpp"

namespace forestvm::scheduler::test_sparse_order {
namespace {

using support::leaf;
using support::split;

/// Returns a number that identifies a node: a split's threshold, a leaf's value.
double name_of_node(const Node& node) { return node.kind == NodeKind::Leaf ? node.value : node.threshold; }

const Node& node_at(const Tree& tree, const TiledTree& tiled, TileChild at) {
  return tree.nodes[static_cast<std::size_t>(at.is_leaf() ? at.leaf()
                                                          : tiled.nodes[tiled.tiles[at.tile()].first_node])];
}

/// Returns the nodes' names by slot. Checks that each split's children are its own and follow it.
std::vector<double> ordered(const Tree& tree, bool by_probability) {
  ShapeTable shapes;
  const TiledTree tiled = cut_into_tiles(tree, Tiling{}, shapes);
  const SparseOrder order = sparse_order(tree, tiled, by_probability);
  std::vector<double> names;
  for (const TileChild at : order.slots) names.push_back(name_of_node(node_at(tree, tiled, at)));
  EXPECT_EQ(order.children.size(), order.slots.size());
  for (std::size_t slot = 0; slot < order.slots.size(); ++slot) {
    const Node& node = node_at(tree, tiled, order.slots[slot]);
    const std::size_t left = order.children[slot];
    if (node.kind == NodeKind::Leaf) {
      EXPECT_EQ(left, 0u);
      continue;
    }
    EXPECT_GT(left, slot);
    EXPECT_EQ(names.at(left), name_of_node(tree.nodes[static_cast<std::size_t>(node.left)]));
    EXPECT_EQ(names.at(left + 1), name_of_node(tree.nodes[static_cast<std::size_t>(node.right)]));
  }
  return names;
}

/// Returns a tree: split 1 above splits 2 and 3, these above splits 4 and 5; leaves are the numbers from 10
/// on.
Tree five_splits(float cover_of_2, float cover_of_3) {
  const Tree two = split(0, 2, split(0, 4, leaf(10), leaf(11)), leaf(12));
  const Tree three = split(0, 3, leaf(15), split(0, 5, leaf(13), leaf(14)));
  Tree tree = split(0, 1, two, three);
  tree.nodes[0].cover = cover_of_2 + cover_of_3;
  tree.nodes[static_cast<std::size_t>(tree.nodes[0].left)].cover = cover_of_2;
  tree.nodes[static_cast<std::size_t>(tree.nodes[0].right)].cover = cover_of_3;
  return tree;
}

TEST(SparseOrder, LevelByLevel) {
  EXPECT_EQ(ordered(five_splits(3, 7), false), (std::vector<double>{1, 2, 3, 4, 12, 15, 5, 10, 11, 13, 14}));
}

TEST(SparseOrder, TheLikelierChildIsFollowedFirst) {
  const std::vector<double> left_first{1, 2, 3, 4, 12, 10, 11, 15, 5, 13, 14};
  EXPECT_EQ(ordered(five_splits(7, 3), true), left_first);
  EXPECT_EQ(ordered(five_splits(5, 5), true), left_first);
  EXPECT_EQ(ordered(five_splits(3, 7), true), (std::vector<double>{1, 2, 3, 15, 5, 13, 14, 4, 12, 10, 11}));
}

TEST(SparseOrder, ALeafAlone) { EXPECT_EQ(ordered(leaf(10), true), std::vector<double>{10}); }

/// Returns a complete tree of `levels` levels of splits; covers say that most walks go `branch` (0 left, 1
/// right).
Tree complete(unsigned levels, unsigned branch, float cover) {
  if (levels == 0) {
    Tree tree = leaf(cover);
    tree.nodes[0].cover = cover;
    return tree;
  }
  Tree tree = split(0, levels, complete(levels - 1, branch, branch == 0 ? cover - 1 : 1),
                    complete(levels - 1, branch, branch == 0 ? 1 : cover - 1));
  tree.nodes[0].cover = cover;
  return tree;
}

/// Returns the number of cache lines touched by the walk that always goes `branch`, in a layout for rank codes.
std::size_t lines_of_walk(const std::string& schedule, const Tree& tree, unsigned branch) {
  const auto compiled = compile(support::model_of({tree}), *parse_schedule(schedule));
  EXPECT_TRUE(compiled.ok()) << (compiled.ok() ? "" : compiled.error().text());
  if (!compiled.ok()) return 0;
  const auto bytes = compiled->program.nodes();
  const Sparse4View::Tree nodes{reinterpret_cast<const Sparse4View::Node*>(bytes.data()), nullptr};
  std::set<std::size_t> lines{0};
  for (std::uint32_t at = 0; !Sparse4View::is_leaf(nodes, at);) {
    at = Sparse4View::child(nodes, at, branch);
    lines.insert(at * sizeof(Sparse4View::Node) / 64);
  }
  return lines.size();
}

TEST(SparseOrder, TheLikeliestWalkOfCodesTouchesOneLine) {
  const std::string coded = "encode(u8); layout(tree, sparse)";
  for (const unsigned branch : {0u, 1u}) {
    const Tree tree = complete(6, branch, 100);
    EXPECT_EQ(lines_of_walk(coded + "; tileTree(tree, 1, probability)", tree, branch), 1u);
    EXPECT_GT(lines_of_walk(coded, tree, branch), 1u);
  }
}

}  // namespace
}  // namespace forestvm::scheduler::test_sparse_order
