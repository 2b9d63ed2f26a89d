// The layout for rank-coded rows and trees too large for the tables layout: the levels at the top of a tree are
// tables, and the nodes below are those of the sparse4 layout. Each step through tables takes a fraction of the time
// of a step through nodes, so a walk of many rows saves most of the time of the levels at the top.
//
// A tree is stored in lines of 16 bytes. First comes a header, then the tables of a tree of up to 256 leaves as in
// the tables layout, whose lines are counted from the line behind the header. Its leaves are exits: exit i leads to
// node i below. The nodes fill whole lines; the last line may have room for up to three more. Nodes stand level by
// level below the exits, children in the order of their parents, so that no two parents can share a child. Leaves
// are numbered in the order of their nodes, and lie aside.
#pragma once

#include <cstdint>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/tables.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

struct TopTablesHeader {
  std::uint32_t levels;      ///< Number of levels of tables; 0 if the tree is a single leaf.
  std::uint32_t exits;       ///< Number of exits of the tables: 1 … 256.
  std::uint32_t nodes_line;  ///< First line of the nodes, counted from the header's.
  std::uint32_t nodes;       ///< Number of nodes, exits included.
};
static_assert(sizeof(TopTablesHeader) == sizeof(TableLine));

struct TopTablesView : TreesInSequence {
  using Node = TableLine;
  static constexpr unsigned kTileWidth = 1;
  static constexpr bool kLeavesAside = true;
  static constexpr bool kLeavesHoldStill = true;
  static constexpr bool kCoded = true;
  static constexpr unsigned kNodesInLine = sizeof(TableLine) / sizeof(Sparse4View::Node);

  struct Tree {
    TablesView::Tree top;     ///< The tables; its leaves lie nowhere.
    Sparse4View::Tree below;  ///< The nodes below, the exits first.
    std::uint32_t depth;      ///< Steps to the deepest leaf.
  };

  // A position is one in the tables or, with the highest bit set, the number of a node below.
  static constexpr std::uint32_t kBelow = std::uint32_t{1} << 31;
  FVM_INLINE static bool is_below(const Tree& tree, std::uint32_t at) {
    return (at & kBelow) != 0 || tree.top.depth == 0;
  }
  FVM_INLINE static std::uint32_t node_of(std::uint32_t at) { return at & ~kBelow; }

  FVM_INLINE static const TopTablesHeader& header(const GroupData& group, std::uint32_t index) {
    return *reinterpret_cast<const TopTablesHeader*>(lines(group, index));
  }
  FVM_INLINE static Tree tree(const GroupData& group, std::uint32_t index) {
    const TableLine* const first = lines(group, index);
    const TopTablesHeader& header = TopTablesView::header(group, index);
    return {{first + 1, nullptr, header.levels, false},
            {reinterpret_cast<const Sparse4View::Node*>(first + header.nodes_line), group.leaves},
            group.trees[index].depth};
  }

  FVM_INLINE static bool is_leaf(const Tree& tree, std::uint32_t at) {
    return is_below(tree, at) && Sparse4View::is_leaf(tree.below, node_of(at));
  }
  FVM_INLINE static float value(const Tree& tree, std::uint32_t at) {
    return Sparse4View::value(tree.below, node_of(at));
  }
  FVM_INLINE static std::uint64_t number_at(const Tree& tree, const TreeDesc& desc, std::uint32_t at) {
    return Sparse4View::number_at(tree.below, desc, node_of(at));
  }
  FVM_INLINE static std::uint32_t column(const Tree& tree, std::uint32_t at) {
    return is_below(tree, at) ? Sparse4View::column(tree.below, node_of(at))
                              : TablesView::column(tree.top, at);
  }
  FVM_INLINE static std::uint8_t code(const Tree& tree, std::uint32_t at) {
    return is_below(tree, at) ? Sparse4View::code(tree.below, node_of(at)) : TablesView::code(tree.top, at);
  }
  FVM_INLINE static std::uint32_t child(const Tree& tree, std::uint32_t at, unsigned branch) {
    if (is_below(tree, at)) return kBelow | Sparse4View::child(tree.below, node_of(at), branch);
    const std::uint32_t next = TablesView::child(tree.top, at, branch);
    return TablesView::is_leaf(tree.top, next) ? kBelow | TablesView::slot_of(next) : next;
  }

  /// Takes one step of a row that has these codes: see code_of.
  template <class Compare, class Codes>
  FVM_INLINE static std::uint32_t next(const Tree& tree, std::uint32_t at, const Codes& codes) {
    if (is_leaf(tree, at)) return at;
    const std::uint8_t x = code_of(codes, column(tree, at));
    return child(tree, at, static_cast<unsigned>(x > code(tree, at)));
  }

  static const char* first_node_rule(const TreeDesc& tree, std::uint32_t index, const GroupDesc& group,
                                     std::uint64_t nodes_before) {
    return TablesView::first_node_rule(tree, index, group, nodes_before);
  }

  /// Returns the record of a tree's tables as if they were a tree of the tables layout.
  static TreeDesc top_record(const TopTablesHeader& header) {
    TreeDesc top{};
    top.node_count = header.nodes_line - 1;
    top.leaf_count = header.exits;
    top.depth = header.levels;
    return top;
  }

  /// Returns what is wrong with a header; null if nothing is.
  static const char* header_rule(const TopTablesHeader& header, const TreeDesc& desc) {
    const std::uint64_t lines = (std::uint64_t{header.nodes} + kNodesInLine - 1) / kNodesInLine;
    if (header.nodes_line == 0 || header.nodes_line + lines != desc.node_count)
      return "its nodes do not end where it ends";
    if (header.nodes < header.exits) return "it has fewer nodes than exits";
    if (header.levels != 0 && header.exits == 1) return "its tables have a single exit";
    return TablesView::tree_rule(top_record(header), GroupDesc{});
  }

  /// Returns what is wrong with the nodes below the tables; null if nothing is. Sets `slot` to the number of the node
  /// that breaks the rule, or to the number of nodes if no single node does. With these rules each node is reached on
  /// one way, and a walk ends after at most as many steps as the tree's record says.
  static const char* nodes_rule(const Tree& tree, const TopTablesHeader& header, const TreeDesc& desc,
                                const NodeFacts& facts, std::uint32_t& slot) {
    std::uint32_t next_child = header.exits, next_leaf = desc.first_leaf;
    std::uint32_t depth = header.levels, level_end = header.exits;
    for (slot = 0; slot < header.nodes; ++slot) {
      if (slot == level_end) {
        level_end = next_child;
        ++depth;
      }
      const Sparse4View::Node node = tree.below.nodes[slot];
      if (node.is_leaf()) {
        if (node.leaf() != next_leaf++) return "a leaf's number does not follow the leaf before";
        continue;
      }
      if (node.column() >= facts.num_columns) return "its column does not exist";
      if (node.code() >= facts.column_codes[node.column()]) return "its code is above its column's ranks";
      if (slot + node.distance() != next_child) return "its children do not follow those of the split before";
      next_child += 2;
    }
    if (next_child != header.nodes) return "it has other nodes than its splits have children";
    if (next_leaf - desc.first_leaf != desc.leaf_count) return "it has other leaves than its record says";
    return depth == desc.depth ? nullptr : "its depth is not that of its deepest leaf";
  }

  /// Returns the number of columns and slots of tables that a walk of a row looks into.
  static std::uint64_t lookups(const Tree& tree, const TreeDesc&) {
    TreeDesc top{};
    top.depth = tree.top.depth;
    return TablesView::lookups(tree.top, top);
  }

 private:
  FVM_INLINE static const TableLine* lines(const GroupData& group, std::uint32_t index) {
    return reinterpret_cast<const TableLine*>(group.nodes) + group.trees[index].first_node;
  }
};

}  // namespace forestvm
