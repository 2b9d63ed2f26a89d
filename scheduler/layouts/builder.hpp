// The builders of layouts: how much memory a group of trees takes, if the layout can hold it, and its nodes. Each row
// of layouts.def has one of each function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/layouts/test.hpp"
#include "scheduler/rank_table.hpp"
#include "scheduler/tiled_forest.hpp"

namespace forestvm::scheduler {

struct LayoutSize {
  std::uint64_t slots = 0;  ///< number of nodes or tiles, padding included, and of leaves that lie aside
  std::uint64_t bytes = 0;
};

/// A group as it will lie in the program.
struct BuiltGroup {
  std::uint64_t node_count = 0;
  std::uint64_t leaf_count = 0;
  std::vector<std::byte> nodes;  ///< nodes or tiles, then the leaves that lie aside
  std::vector<TreeDesc> trees;
  /// Leaf numbers: one for each leaf that lies aside; one for each node in layouts whose leaves are nodes.
  std::vector<std::uint32_t> numbers;
  std::vector<double> wide_leaves;  ///< outputs of float64 models, indexed as `numbers`
};

#define FVM_LAYOUT(number, Name, text, word, View, meaning)                          \
  Result<LayoutSize> size_##Name(const TiledForest& forest, const TreeGroup& group); \
  Result<BuiltGroup> build_##Name(const TiledForest& forest, const TreeGroup& group, const RankTable& ranks);
#include <forestvm/core/layouts.def>

// These call the function of the group's layout.

/// Returns what the group's trees take. Refuses, with the reason, trees that the layout cannot hold.
Result<LayoutSize> layout_size(const TiledForest& forest, const TreeGroup& group);
/// Builds a group that its layout can hold. `ranks` is sealed. Refuses more columns of codes than the
/// layout's nodes have room for.
Result<BuiltGroup> build(const TiledForest& forest, const TreeGroup& group, const RankTable& ranks);

/// Returns a leaf's output as the walkers add it: DART weight and value multiplied in the type of the scores.
template <class Score>
Score leaf_output(const Tree& tree, std::int32_t leaf) {
  return static_cast<Score>(tree.weight) *
         static_cast<Score>(tree.nodes[static_cast<std::size_t>(leaf)].value);
}

/// Returns a leaf's output as float32, rounded in float64 models, whose nodes hold float32 too.
inline float leaf_output(const TiledForest& forest, const Tree& tree, std::int32_t leaf) {
  return forest.model().score_type == ScalarType::Float64
             ? static_cast<float>(leaf_output<double>(tree, leaf))
             : leaf_output<float>(tree, leaf);
}

/// Sets the leaf number, and in float64 models the output, of the leaf that is entry `slot` of
/// BuiltGroup::numbers.
void set_number(BuiltGroup& built, const TiledForest& forest, std::size_t slot, const Tree& tree,
                std::int32_t leaf);

inline Test test_of(const Tree& tree, std::int32_t split) {
  if (split == kNoNode) return {};
  const Node& node = tree.nodes[static_cast<std::size_t>(split)];
  return {static_cast<float>(node.threshold), node.feature | (node.missing_left ? kMissingLeft : 0u),
          node.kind == NodeKind::Category ? &tree.category_sets[node.payload] : nullptr};
}

/// Returns both children of a split, where tiles have one node.
inline std::span<const TileChild, 2> children_of(const TiledTree& tiled, TileChild split) {
  return std::span<const TileChild, 2>(&tiled.children[tiled.tiles[split.tile()].first_child], 2);
}

/// A tree of a group: its position in the program's order, and both of its forms.
struct GroupTree {
  std::uint32_t position;
  const Tree& tree;
  const TiledTree& tiled;

  /// Returns the test of a split, where tiles have one node.
  Test test(TileChild split) const {
    return test_of(tree, tiled.nodes[tiled.tiles[split.tile()].first_node]);
  }
};

/// Calls visit(GroupTree) for each tree of a group, in the program's order.
template <class Visit>
void for_trees(const TiledForest& forest, const TreeGroup& group, Visit visit) {
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    visit(GroupTree{t, forest.model_tree(t), forest.tree(group.tiling, t)});
}

/// Returns the record of a tree, in which the ranges of its nodes and leaves are still missing.
inline TreeDesc record_of(const TiledForest& forest, std::uint32_t position, std::uint32_t depth) {
  TreeDesc desc{};
  desc.output = forest.model_tree(position).output;
  desc.depth = depth;
  desc.number = forest.order[position];
  return desc;
}

template <class T>
void append(std::vector<std::byte>& bytes, const std::vector<T>& records) {
  const auto more = std::as_bytes(std::span(records));
  bytes.insert(bytes.end(), more.begin(), more.end());
}

/// Builds a group whose trees follow one another, as do the leaves that lie aside.
template <class Node>
class GroupBuilder {
 public:
  explicit GroupBuilder(const TiledForest& forest) : forest_(forest) {}

  std::vector<Node> nodes;
  std::vector<float> leaves;  ///< outputs of the leaves that lie aside

  /// Appends a leaf that lies aside.
  void add_leaf(const GroupTree& at, TileChild leaf) {
    set_number(built_, forest_, leaves.size(), at.tree, leaf.leaf());
    leaves.push_back(leaf_output(forest_, at.tree, leaf.leaf()));
  }

  /// Sets the leaf number of the next node, which is this leaf. Returns the leaf's output.
  float number_next_node(const GroupTree& at, TileChild leaf) {
    set_number(built_, forest_, nodes.size(), at.tree, leaf.leaf());
    return leaf_output(forest_, at.tree, leaf.leaf());
  }

  /// Calls add(GroupTree, first leaf) for each tree; add() appends the tree's nodes and leaves.
  template <class Add>
  void add_trees(const TreeGroup& group, Add add) {
    for_trees(forest_, group, [&](const GroupTree& at) {
      TreeDesc desc = record_of(forest_, at.position, at.tiled.depth);
      desc.first_node = static_cast<std::uint32_t>(nodes.size());
      desc.first_leaf = static_cast<std::uint32_t>(leaves.size());
      add(at, desc.first_leaf);
      desc.node_count = static_cast<std::uint32_t>(nodes.size()) - desc.first_node;
      desc.leaf_count = static_cast<std::uint32_t>(leaves.size()) - desc.first_leaf;
      built_.trees.push_back(desc);
    });
  }

  BuiltGroup finish() {
    built_.node_count = nodes.size();
    built_.leaf_count = leaves.size();
    built_.nodes.reserve(std::as_bytes(std::span(nodes)).size() + std::as_bytes(std::span(leaves)).size());
    append(built_.nodes, nodes);
    append(built_.nodes, leaves);
    return std::move(built_);
  }

 private:
  const TiledForest& forest_;
  BuiltGroup built_;
};

}  // namespace forestvm::scheduler
