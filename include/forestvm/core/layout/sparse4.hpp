// The sparse layout for rank-coded rows: a test is a column of codes and a byte, so that a node takes 4 bytes
// and a step one load beside the code itself. It is for calls of a few rows, whose lanes are trees. Siblings
// are adjacent, a node's left child is found by its distance, and leaves lie aside.
#pragma once

#include <cstdint>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/tile.hpp>
#include <forestvm/core/layout/tree_order.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

struct Sparse4View : TreesInSequence {
  static constexpr unsigned kColumnShift = 8, kColumnBits = 12, kDistanceShift = 20, kLeafShift = 8;
  static constexpr std::uint32_t kMaxColumns = std::uint32_t{1} << kColumnBits;
  static constexpr std::uint32_t kMaxDistance = (std::uint32_t{1} << (32 - kDistanceShift)) - 1;
  /// Most leaves of a group.
  static constexpr std::uint32_t kMaxLeaves = std::uint32_t{1} << (32 - kLeafShift);

  /// A node. Its lowest byte is the code, which is kNeverRight for a leaf. Above it a leaf has its number in
  /// the group, a split its column and the distance to its left child.
  struct Node {
    std::uint32_t word;

    FVM_INLINE std::uint8_t code() const { return static_cast<std::uint8_t>(word); }
    FVM_INLINE std::uint32_t column() const { return word >> kColumnShift & (kMaxColumns - 1); }
    FVM_INLINE std::uint32_t distance() const { return word >> kDistanceShift; }
    FVM_INLINE bool is_leaf() const { return code() == kNeverRight; }
    /// Returns the number of the leaf. At a split, where a walk of too few steps may end, it is the number of
    /// some leaf.
    FVM_INLINE std::uint32_t leaf() const { return is_leaf() ? word >> kLeafShift : 0; }
  };
  static_assert(sizeof(Node) == 4);
  static constexpr unsigned kTileWidth = 1;
  static constexpr bool kLeavesAside = true;
  static constexpr bool kLeavesHoldStill = true;
  static constexpr bool kCoded = true;

  /// The word of the leaf with number 0.
  static constexpr std::uint32_t kLeafWord = kNeverRight;
  FVM_INLINE static constexpr Node leaf_node(std::uint32_t number) {
    return {number << kLeafShift | kNeverRight};
  }
  FVM_INLINE static constexpr Node split_node(std::uint32_t column, std::uint8_t code,
                                              std::uint32_t distance) {
    return {distance << kDistanceShift | column << kColumnShift | code};
  }

  struct Tree {
    const Node* nodes;
    const float* leaves;  ///< The group's leaves.
  };

  FVM_INLINE static Tree tree(const GroupData& group, std::uint32_t index) {
    return {reinterpret_cast<const Node*>(group.nodes) + group.trees[index].first_node, group.leaves};
  }
  FVM_INLINE static bool is_leaf(const Tree& tree, std::uint32_t at) { return tree.nodes[at].is_leaf(); }
  FVM_INLINE static float value(const Tree& tree, std::uint32_t at) {
    return tree.leaves[tree.nodes[at].leaf()];
  }
  FVM_INLINE static std::uint64_t number_at(const Tree& tree, const TreeDesc&, std::uint32_t at) {
    return tree.nodes[at].leaf();
  }
  FVM_INLINE static std::uint32_t column(const Tree& tree, std::uint32_t at) {
    return tree.nodes[at].column();
  }
  FVM_INLINE static std::uint8_t code(const Tree& tree, std::uint32_t at) { return tree.nodes[at].code(); }
  FVM_INLINE static std::uint32_t child(const Tree& tree, std::uint32_t at, unsigned branch) {
    return at + tree.nodes[at].distance() + branch;
  }

  /// Takes one step of a row that has these codes: see code_of.
  template <class Compare, class Codes>
  FVM_INLINE static std::uint32_t next(const Tree& tree, std::uint32_t at, const Codes& codes) {
    const Node node = tree.nodes[at];
    // A leaf's bits may name no column.
    const std::uint8_t x = code_of(codes, node.is_leaf() ? 0 : node.column());
    return at + (node.is_leaf() ? 0 : node.distance()) + static_cast<std::uint32_t>(x > node.code());
  }

  static constexpr const char* kNodeRules[] = {
      "a leaf lies outside its tree", "its column does not exist", "a child does not come after its parent",
      "a child lies outside its tree", "its code is above its column's ranks"};
  static std::uint32_t broken_rules(const Tree& tree, std::uint32_t slot, const TreeDesc& desc,
                                    const NodeFacts& facts) {
    const Node node = tree.nodes[slot];
    const std::uint32_t leaf = all_bits((~node.word & 0xff) == 0), split = ~leaf;  // see all_bits
    const std::uint32_t number = node.word >> kLeafShift;
    return rule_bit(0, leaf & all_bits(number - desc.first_leaf >= desc.leaf_count)) |
           rule_bit(1, split & all_bits(node.column() >= facts.num_columns)) |
           rule_bit(2, split & all_bits(node.distance() == 0)) |
           rule_bit(3, split & all_bits(node.distance() >= desc.node_count - 1 - slot));
  }
  /// Returns the broken rules that need a look-up, as bits. They are computed apart from the other rules,
  /// because vectors cannot look up.
  static std::uint32_t broken_lookup_rules(const Tree& tree, std::uint32_t slot, const NodeFacts& facts) {
    const Node node = tree.nodes[slot];
    const auto after = static_cast<std::uint8_t>(node.code() + 1);  // 0 for a leaf
    return rule_bit(4, all_bits(after > facts.column_codes[node.column()]));
  }
};

}  // namespace forestvm
