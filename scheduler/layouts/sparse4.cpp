// Builds the sparse layout for rank-coded rows, and says which trees it can hold.
#include <forestvm/core/layout/sparse4.hpp>

#include <algorithm>
#include <deque>

#include "scheduler/layouts/sparse.hpp"

namespace forestvm::scheduler {
namespace {

using Node = Sparse4View::Node;

constexpr std::size_t kLineNodes = 64 / sizeof(Node);

/// What stands in each slot of a tree, and where the children of a tile's stand.
struct Placing {
  std::vector<std::optional<TileChild>> slots;  ///< nothing: padding
  std::vector<std::uint32_t> children;          ///< by slot: of the left child
};

/// Nodes in cache lines, in each a node or two siblings with as many nodes below them as fit, level by level
/// or the likeliest first: a walk of a few trees, whose nodes are in no near cache, touches few lines.
Placing place(const Tree& tree, const TiledTree& tiled, bool by_probability) {
  Placing placing;
  auto& slots = placing.slots;
  struct Block {
    std::vector<TileChild> nodes;
    std::optional<std::uint32_t> parent;  ///< slot
  };
  std::deque<Block> blocks{{{tiled.root}, std::nullopt}};
  std::vector<std::pair<std::size_t, std::size_t>> inside;  // parent and left child in a block's nodes
  std::vector<std::size_t> splits;                          // of a block, whose children have no place
  for (; !blocks.empty(); blocks.pop_front()) {
    std::vector<TileChild>& nodes = blocks.front().nodes;
    const auto less_likely = [&](std::size_t a, std::size_t b) {
      return cover_of(tree, tiled, nodes[a]) < cover_of(tree, tiled, nodes[b]);
    };
    inside.clear();
    splits.clear();
    const auto wait = [&](std::size_t from) {
      for (std::size_t i = from; i < nodes.size(); ++i)
        if (!nodes[i].is_leaf()) splits.push_back(i);
    };
    wait(0);
    // Pairs of children join the block as long as they fit; of the others each is a block of its own.
    while (!splits.empty() && nodes.size() + 2 <= kLineNodes) {
      const auto next =
          by_probability ? std::max_element(splits.begin(), splits.end(), less_likely) : splits.begin();
      const std::size_t parent = *next, left = nodes.size();
      splits.erase(next);
      inside.emplace_back(parent, left);
      for (const TileChild child : children_of(tiled, nodes[parent])) nodes.push_back(child);
      wait(left);
    }
    if (slots.size() % kLineNodes + nodes.size() > kLineNodes)
      slots.resize((slots.size() + kLineNodes - 1) / kLineNodes * kLineNodes);
    const auto first = static_cast<std::uint32_t>(slots.size());
    slots.insert(slots.end(), nodes.begin(), nodes.end());
    placing.children.resize(slots.size());
    if (blocks.front().parent) placing.children[*blocks.front().parent] = first;
    for (const auto& [parent, child] : inside)
      placing.children[first + parent] = static_cast<std::uint32_t>(first + child);
    for (const std::size_t parent : splits) {
      const auto pair = children_of(tiled, blocks.front().nodes[parent]);
      blocks.push_back({{pair.begin(), pair.end()}, static_cast<std::uint32_t>(first + parent)});
    }
  }
  slots.resize((slots.size() + kLineNodes - 1) / kLineNodes * kLineNodes);
  return placing;
}

/// The same of a group's tree.
Placing place(const TiledForest& forest, const TreeGroup& group, std::uint32_t position) {
  return place(forest.model_tree(position), forest.tree(group.tiling, position), group.tiling.by_probability);
}

}  // namespace

LayoutSize size_Sparse4(const TiledForest& forest, const TreeGroup& group) {
  LayoutSize size;
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t) {
    const TiledTree& tree = forest.tree(group.tiling, t);
    const std::uint64_t slots = place(forest, group, t).slots.size();
    size.slots += slots + tree.leaves;
    size.bytes += slots * sizeof(Node) + tree.leaves * sizeof(float);
  }
  return size;
}

std::optional<std::string> misfit_Sparse4(const TiledForest& forest, const TreeGroup& group) {
  const auto columns = forest.ranks.columns().size();
  if (columns > Sparse4View::kMostColumns)
    return "its nodes have room for " + std::to_string(Sparse4View::kMostColumns) +
           " columns of codes, the model's thresholds need " + std::to_string(columns);
  std::uint64_t leaves = 0;
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t) {
    const TiledTree& tree = forest.tree(group.tiling, t);
    leaves += tree.leaves;
    const std::uint64_t reach =
        tree.size() > Sparse4View::kMostDistance ? tree.size() : place(forest, group, t).slots.size();
    if (reach > Sparse4View::kMostDistance)
      return "its nodes reach children at most " + std::to_string(Sparse4View::kMostDistance) +
             " nodes away, tree " + std::to_string(t) + " takes " + std::to_string(reach);
  }
  if (leaves > Sparse4View::kMostLeaves)
    return "a group can have " + std::to_string(Sparse4View::kMostLeaves) + " leaves, this one has " +
           std::to_string(leaves);
  return std::nullopt;
}

BuiltGroup build_Sparse4(const TiledForest& forest, const TreeGroup& group) {
  BuiltGroup built;
  std::vector<Node> nodes;
  std::vector<float> leaves;
  for (std::uint32_t position = group.tree_begin; position < group.tree_end; ++position) {
    const Tree& tree = forest.model_tree(position);
    const TiledTree& tiled = forest.tree(group.tiling, position);
    const Placing placing = place(forest, group, position);
    TreeDesc desc = record_of(forest, position, tiled.depth);
    desc.first_node = static_cast<std::uint32_t>(nodes.size());
    desc.node_count = static_cast<std::uint32_t>(placing.slots.size());
    desc.first_leaf = static_cast<std::uint32_t>(leaves.size());
    desc.leaf_count = tiled.leaves;
    const Node padding{desc.first_leaf << Sparse4View::kLeafShift | kNeverRight};
    for (std::uint32_t slot = 0; slot < placing.slots.size(); ++slot) {
      const auto& at = placing.slots[slot];
      if (!at) {
        nodes.push_back(padding);
      } else if (at->is_leaf()) {
        nodes.push_back({static_cast<std::uint32_t>(leaves.size()) << Sparse4View::kLeafShift | kNeverRight});
        set_number(built, forest, leaves.size(), tree, at->leaf());
        leaves.push_back(leaf_output(forest, tree, at->leaf()));
      } else {
        const CodedTest coded =
            forest.ranks.find(test_of(tree, tiled.nodes[tiled.tiles[at->tile()].first_node]));
        nodes.push_back({(placing.children[slot] - slot) << Sparse4View::kDistanceShift |
                         coded.column << Sparse4View::kColumnShift | coded.code});
      }
    }
    built.trees.push_back(desc);
  }
  built.node_count = nodes.size();
  built.leaf_count = leaves.size();
  append(built.nodes, nodes);
  append(built.nodes, leaves);
  return built;
}

}  // namespace forestvm::scheduler
