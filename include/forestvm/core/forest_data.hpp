// The records of a program's forest data, as they lie in a file, in memory and on a device.
// Little-endian, fixed sizes, no padding bytes.
#pragma once

#include <cstdint>
#include <limits>

#include <forestvm/core/bytecode.hpp>

namespace forestvm {

/// How the pairs of a walk are visited.
enum class WalkOrder : std::uint8_t {
  RowsOuter,   ///< for row: for tree
  TreesOuter,  ///< for tree: for row
};

/// How a walk knows that it has arrived.
enum class WalkEnd : std::uint8_t {
  UntilLeaf,  ///< `hops` hops without a leaf check, then hop by hop to a leaf
  Exact,      ///< exactly `hops` hops, no leaf check at all
};

/// One way of walking a group of trees: what a walk instruction's walker operand names.
struct WalkerDesc {
  std::uint32_t group;  ///< row of the group table
  std::uint16_t hops;   ///< hops without a leaf check
  WalkEnd end;
  WalkOrder order;
  std::uint8_t interleaved_trees;  ///< walks in lockstep: trees x rows, each a power of two
  std::uint8_t interleaved_rows;
  std::uint16_t reserved;  ///< zero
};
static_assert(sizeof(WalkerDesc) == 12);

inline constexpr unsigned kMaxInterleave = 8;  ///< of interleaved_trees x interleaved_rows

/// Trees [tree_begin, tree_end) of the model in one layout. Its tree records are
/// trees[first_tree … first_tree + tree_end - tree_begin), its nodes a byte range of the nodes section.
struct GroupDesc {
  Layout layout;
  std::uint8_t reserved[3];  ///< zero
  std::uint32_t tree_begin;
  std::uint32_t tree_end;
  std::uint32_t first_tree;
  std::uint64_t node_offset;  ///< bytes from the start of the nodes section; a multiple of 64
  std::uint64_t node_count;
};
static_assert(sizeof(GroupDesc) == 32);

/// One tree of a group.
struct TreeDesc {
  std::uint32_t first_node;  ///< the root, counted from the group's first node
  std::uint32_t node_count;  ///< slots, padding included
  std::uint32_t output;      ///< the raw output its leaves add to
  std::uint32_t depth;       ///< hops from the root to the deepest slot
};
static_assert(sizeof(TreeDesc) == 16);

/// How often an accumulator exists: a0 once; a private one once per iteration of its loop and copy of its
/// parent.
struct AccumulatorDesc {
  std::uint32_t parent;      ///< the accumulator it is reduced into; its own number for a0
  std::uint32_t iterations;  ///< of the parallel loop, at most; 1 for a0
  std::uint32_t copies;      ///< iterations x the parent's copies
};
static_assert(sizeof(AccumulatorDesc) == 12);

/// A node's feature word: the feature number and two flags.
inline constexpr std::uint32_t kFeatureMask = 0x3fffffff;
inline constexpr std::uint32_t kMissingLeft = 0x40000000;
inline constexpr std::uint32_t kLeaf = 0x80000000;
inline constexpr std::uint32_t kMaxFeatures = kFeatureMask + 1;

}  // namespace forestvm
