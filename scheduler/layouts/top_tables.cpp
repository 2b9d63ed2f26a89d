// Builds the layout of tables at the top of trees and nodes below them, and says which trees it can hold.
#include <forestvm/core/layout/top_tables.hpp>
#include <forestvm/internal/formatted.hpp>

#include <cstring>

#include "scheduler/layouts/builder.hpp"
#include "scheduler/layouts/table_levels.hpp"

namespace forestvm::scheduler {
namespace {

/// A tree in two parts: the levels whose tests are tables, and the nodes below. One object serves tree after tree, so
/// that its memory is allocated once.
struct TopAndBelow {
  TiledTree top;  ///< The tree's upper levels, in which leaf i stands for exits[i].
  std::vector<TileChild> exits;
  Levels levels;                 ///< the levels of `top`
  std::vector<TileChild> nodes;  ///< the nodes below, the exits first, in the order of the exits' numbers
  std::vector<std::uint32_t> children;  ///< the number of each split's left child among `nodes`; 0 for leaves

  /// Finds the tables of a tree, but not the nodes below.
  void find_top(const TiledTree& tree) {
    const std::uint32_t tiles = choose_levels(tree);
    cut(tree, tiles);
    levels_of(top, levels);
  }

  void divide(const TiledTree& tree) {
    find_top(tree);
    nodes.clear();
    children.clear();
    for (const TileChild exit : levels.leaves) nodes.push_back(exits[static_cast<std::size_t>(exit.leaf())]);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const bool leaf = nodes[i].is_leaf();
      children.push_back(leaf ? 0 : static_cast<std::uint32_t>(nodes.size()));
      if (leaf) continue;
      const auto pair = children_of(tree, nodes[i]);
      nodes.insert(nodes.end(), pair.begin(), pair.end());
    }
  }

  /// Returns the greatest distance from a node to its left child.
  std::uint32_t reach() const {
    std::uint32_t most = 0;
    for (std::uint32_t i = 0; i < children.size(); ++i)
      if (children[i] != 0) most = std::max(most, children[i] - i);
    return most;
  }

 private:
  /// Chooses as many levels as have at most kMaxTableLeaves exits. Sets top.depth and top.leaves to the numbers of
  /// levels and exits; returns the number of splits in these levels.
  std::uint32_t choose_levels(const TiledTree& tree) {
    top.depth = 0;
    top.leaves = 1;
    if (tree.root.is_leaf()) return 0;
    std::uint32_t begin = 0, end = 1;  // the splits of a level
    while (begin < end) {
      std::uint32_t splits = 0;
      for (std::uint32_t i = 2 * begin; i < 2 * end; ++i) splits += tree.children[i].is_leaf() ? 0u : 1u;
      const std::uint32_t leaves = top.leaves + (end - begin);  // each split becomes two exits
      if (leaves > kMaxTableLeaves) break;
      top.leaves = leaves;
      ++top.depth;
      begin = end;
      end += splits;
    }
    return begin;
  }

  /// Makes `top` of the tree's first `tiles` splits, which are its upper levels, because splits lie level by level.
  void cut(const TiledTree& tree, std::uint32_t tiles) {
    top.tiles.assign(tree.tiles.begin(), tree.tiles.begin() + tiles);
    top.nodes.assign(tree.nodes.begin(), tree.nodes.begin() + tiles);
    top.children.clear();
    exits.clear();
    const auto add = [&](TileChild child) {
      if (!child.is_leaf() && child.tile() < tiles) return child;
      exits.push_back(child);
      return TileChild::leaf(static_cast<std::int32_t>(exits.size() - 1));
    };
    top.root = add(tree.root);
    for (std::uint32_t i = 0; i < 2 * tiles; ++i) top.children.push_back(add(tree.children[i]));
  }
};

}  // namespace

Result<LayoutSize> size_TopTables(const TiledForest& forest, const TreeGroup& group) {
  LayoutSize size;
  std::uint64_t leaves = 0;
  std::string problem;
  TopAndBelow parts;
  for_trees(forest, group, [&](const GroupTree& at) {
    leaves += at.tiled.leaves;
    if (!problem.empty()) return;
    if (at.tiled.leaves <= Sparse4View::kMaxDistance / 2) {
      parts.find_top(at.tiled);  // the tree has fewer nodes than nodes reach
    } else {
      parts.divide(at.tiled);
      if (const std::uint32_t reach = parts.reach(); reach > Sparse4View::kMaxDistance)
        problem = formatted("its nodes reach children at most {} nodes away, tree {} needs {}",
                            Sparse4View::kMaxDistance, at.position, reach);
    }
    for (const Level& level : parts.levels.levels) {
      size.slots += level.slot_count;
      size.bytes += level_bytes(level);
    }
    const std::uint64_t below = at.tiled.size() - parts.top.tiles.size();
    size.slots += below + at.tiled.leaves;
    size.bytes +=
        sizeof(TopTablesHeader) + below * sizeof(Sparse4View::Node) + at.tiled.leaves * sizeof(float);
  });
  if (!problem.empty()) return refused(problem);
  if (leaves > Sparse4View::kMaxLeaves)
    return refused(formatted("a group can have {} leaves, this one has {}", Sparse4View::kMaxLeaves, leaves));
  return size;
}

Result<BuiltGroup> build_TopTables(const TiledForest& forest, const TreeGroup& group,
                                   const RankTable& ranks) {
  if (const std::size_t columns = ranks.columns().size(); columns > Sparse4View::kMaxColumns)
    return refused(formatted("its nodes have room for {} columns of codes, the model's thresholds need {}",
                             Sparse4View::kMaxColumns, columns));
  GroupBuilder<TableLine> built(forest);
  TopAndBelow parts;
  std::vector<TableLevel> records;
  std::vector<std::uint8_t> tables;
  std::vector<Sparse4View::Node> nodes;
  built.add_trees(group, [&](const GroupTree& at, std::uint32_t) {
    parts.divide(at.tiled);
    records.clear();
    tables.clear();
    append_tables(ranks, {at.position, at.tree, parts.top}, parts.levels, records, tables);
    const std::size_t first = built.nodes.size();
    built.nodes.push_back({});
    const std::uint32_t lines = append_lines(records, tables, built.nodes);
    const auto count = static_cast<std::uint32_t>(parts.nodes.size());
    const TopTablesHeader header{parts.top.depth, parts.top.leaves, lines + 1, count};
    std::memcpy(&built.nodes[first], &header, sizeof header);
    nodes.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      const TileChild node = parts.nodes[i];
      if (node.is_leaf()) {
        nodes.push_back(Sparse4View::leaf_node(static_cast<std::uint32_t>(built.leaves.size())));
        built.add_leaf(at, node);
      } else {
        const CodedTest test = ranks.find(at.test(node));
        nodes.push_back(Sparse4View::split_node(test.column, test.code, parts.children[i] - i));
      }
    }
    const std::size_t behind = built.nodes.size();
    built.nodes.resize(behind +
                       (nodes.size() + TopTablesView::kNodesInLine - 1) / TopTablesView::kNodesInLine);
    std::memcpy(&built.nodes[behind], nodes.data(), nodes.size() * sizeof nodes.front());
  });
  built.nodes.resize(built.nodes.size() + kTableSlack);
  return built.finish();
}

}  // namespace forestvm::scheduler
