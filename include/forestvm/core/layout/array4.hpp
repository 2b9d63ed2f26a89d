// The array layout for rank-coded rows: complete trees in level order, 4 bytes a slot. A test is a column of
// codes and a byte, and a slot of the last level the leaf's output: no slot says whether it is a leaf. A leaf
// above the last level is repeated in every slot of the last level below it; its slots above are tests at
// which no row goes right.
#pragma once

#include <cstdint>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/level_order.hpp>
#include <forestvm/core/layout/tile.hpp>
#include <forestvm/core/layout/tree_order.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

struct Array4View : TreesInSequence {
  static constexpr unsigned kCodeShift = 24;
  static constexpr std::uint32_t kColumnMask = (std::uint32_t{1} << kCodeShift) - 1;
  static_assert(kMaxColumns <= kColumnMask);

  /// A slot. In the last level it holds the bits of a float. In the levels above it holds a column and a code,
  /// which is kNeverRight where a leaf is repeated below. A row whose code is x goes right if x << kCodeShift is
  /// above the word.
  struct Node {
    std::uint32_t word;

    FVM_INLINE std::uint8_t code() const { return static_cast<std::uint8_t>(word >> kCodeShift); }
    FVM_INLINE std::uint32_t column() const { return word & kColumnMask; }
  };
  static_assert(sizeof(Node) == 4);
  static constexpr unsigned kTileWidth = 1;
  static constexpr bool kLeavesAside = false;
  static constexpr bool kLeavesHoldStill = false;
  static constexpr bool kCoded = true;

  struct Tree {
    const Node* nodes;
    std::uint32_t inner;  ///< Number of slots above the last level.
  };

  FVM_INLINE static Tree tree(const GroupData& group, std::uint32_t index) {
    const TreeDesc& desc = group.trees[index];
    return {reinterpret_cast<const Node*>(group.nodes) + desc.first_node, desc.node_count / 2};
  }
  FVM_INLINE static bool is_leaf(const Tree& tree, std::uint32_t at) { return at >= tree.inner; }
  FVM_INLINE static float value(const Tree& tree, std::uint32_t at) {
    return __builtin_bit_cast(float, tree.nodes[at].word);
  }
  FVM_INLINE static std::uint64_t number_at(const Tree&, const TreeDesc& desc, std::uint32_t at) {
    return std::uint64_t{desc.first_node} + at;
  }
  FVM_INLINE static std::uint32_t column(const Tree& tree, std::uint32_t at) {
    return tree.nodes[at].column();
  }
  FVM_INLINE static std::uint8_t code(const Tree& tree, std::uint32_t at) { return tree.nodes[at].code(); }
  FVM_INLINE static std::uint32_t child(const Tree&, std::uint32_t at, unsigned branch) {
    return 2 * at + 1 + branch;
  }

  /// Takes one step of a row that has these codes: see code_of.
  template <class Compare, class Codes>
  FVM_INLINE static std::uint32_t next(const Tree& tree, std::uint32_t at, const Codes& codes) {
    const Node node = tree.nodes[at];
    // A leaf's bits may name no column.
    const std::uint8_t x = code_of(codes, is_leaf(tree, at) ? 0 : node.column());
    return child(tree, at, static_cast<unsigned>(x > node.code()));
  }

  static const char* tree_rule(const TreeDesc& tree, const GroupDesc&) { return level_order_rule(tree, 2); }

  static constexpr const char* kNodeRules[] = {"its column does not exist",
                                               "its code is above its column's ranks"};
  static std::uint32_t broken_rules(const Tree& tree, std::uint32_t slot, const TreeDesc&,
                                    const NodeFacts& facts) {
    return rule_bit(0, all_bits(slot < tree.inner) & all_bits(column(tree, slot) >= facts.num_columns));
  }
  /// Returns the broken rules that need a look-up, as bits. They are computed apart from the other rules,
  /// because vectors cannot look up.
  static std::uint32_t broken_lookup_rules(const Tree& tree, std::uint32_t slot, const NodeFacts& facts) {
    const Node node = tree.nodes[slot];
    if (is_leaf(tree, slot) || node.column() >= facts.num_columns) return 0;
    const auto after = static_cast<std::uint8_t>(node.code() + 1);  // 0 where no row goes right
    return rule_bit(1, all_bits(after > facts.column_codes[node.column()]));
  }
};

}  // namespace forestvm
