// Builds the sparse layout for rank-coded rows, and says which trees it can hold.
#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/internal/formatted.hpp>

#include <algorithm>
#include <deque>

#include "scheduler/layouts/sparse.hpp"

namespace forestvm::scheduler {
namespace {

constexpr std::size_t kLineNodes = 64 / sizeof(Sparse4View::Node);

/// The order of a tree's nodes in cache lines.
struct LineOrder {
  std::vector<std::optional<TileChild>> slots;  ///< node in each slot; std::nullopt is padding
  std::vector<std::uint32_t> children;          ///< slot of each node's left child
};

/// Fills cache lines, each with a node or two siblings and as many of the nodes below them as fit, level by
/// level or the likeliest first. A walk through trees that are not in the cache then loads few lines.
LineOrder line_order(const GroupTree& at, const TreeGroup& group) {
  const Tree& tree = at.tree;
  const TiledTree& tiled = at.tiled;
  const bool by_probability = group.tiling.by_probability;
  LineOrder order;
  auto& slots = order.slots;
  struct Block {
    std::vector<TileChild> nodes;
    std::optional<std::uint32_t> parent;  ///< slot of the node above; none above the root
  };
  std::deque<Block> blocks{{{tiled.root}, std::nullopt}};
  std::vector<std::pair<std::size_t, std::size_t>> inside;  // parent and left child in a block's nodes
  std::vector<std::size_t> splits;  // splits of a block whose children have no slot yet
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
    // Pairs of children join the block as long as they fit; each pair that does not fit begins a block.
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
    order.children.resize(slots.size());
    if (blocks.front().parent) order.children[*blocks.front().parent] = first;
    for (const auto& [parent, child] : inside)
      order.children[first + parent] = static_cast<std::uint32_t>(first + child);
    for (const std::size_t parent : splits) {
      const auto pair = children_of(tiled, blocks.front().nodes[parent]);
      blocks.push_back({{pair.begin(), pair.end()}, static_cast<std::uint32_t>(first + parent)});
    }
  }
  slots.resize((slots.size() + kLineNodes - 1) / kLineNodes * kLineNodes);
  return order;
}

}  // namespace

LayoutSize size_Sparse4(const TiledForest& forest, const TreeGroup& group) {
  LayoutSize size;
  for_trees(forest, group, [&](const GroupTree& at) {
    const std::uint64_t slots = line_order(at, group).slots.size();
    size.slots += slots + at.tiled.leaves;
    size.bytes += slots * sizeof(Sparse4View::Node) + at.tiled.leaves * sizeof(float);
  });
  return size;
}

std::optional<std::string> why_not_Sparse4(const TiledForest& forest, const TreeGroup& group) {
  std::optional<std::string> problem;
  std::uint64_t leaves = 0;
  for_trees(forest, group, [&](const GroupTree& at) {
    leaves += at.tiled.leaves;
    if (problem) return;
    const std::uint64_t size = at.tiled.size();
    const std::uint64_t reach = size > Sparse4View::kMaxDistance ? size : line_order(at, group).slots.size();
    if (reach > Sparse4View::kMaxDistance)
      problem = formatted("its nodes reach children at most {} nodes away, tree {} takes {}",
                          Sparse4View::kMaxDistance, at.position, reach);
  });
  if (!problem && leaves > Sparse4View::kMaxLeaves)
    problem = formatted("a group can have {} leaves, this one has {}", Sparse4View::kMaxLeaves, leaves);
  return problem;
}

Result<BuiltGroup> build_Sparse4(const TiledForest& forest, const TreeGroup& group, const RankTable& ranks) {
  if (const std::size_t columns = ranks.columns().size(); columns > Sparse4View::kMaxColumns)
    return refused(formatted("its nodes have room for {} columns of codes, the model's thresholds need {}",
                             Sparse4View::kMaxColumns, columns));
  GroupBuilder<Sparse4View::Node> built(forest);
  const auto leaf = [](std::size_t number) {
    return Sparse4View::Node{static_cast<std::uint32_t>(number) << Sparse4View::kLeafShift | kNeverRight};
  };
  built.add_trees(group, [&](const GroupTree& at, std::uint32_t first_leaf) {
    const LineOrder order = line_order(at, group);
    for (std::uint32_t slot = 0; slot < order.slots.size(); ++slot) {
      const std::optional<TileChild>& node = order.slots[slot];
      if (!node) {
        built.nodes.push_back(leaf(first_leaf));
      } else if (node->is_leaf()) {
        built.nodes.push_back(leaf(built.leaves.size()));
        built.add_leaf(at, *node);
      } else {
        const CodedTest coded = ranks.find(at.test(*node));
        built.nodes.push_back({(order.children[slot] - slot) << Sparse4View::kDistanceShift |
                               coded.column << Sparse4View::kColumnShift | coded.code});
      }
    }
  });
  return built.finish();
}

}  // namespace forestvm::scheduler
