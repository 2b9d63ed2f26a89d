// The records of a program's forest data, as they lie in a file, in memory and on a device.
// Little-endian, fixed sizes, no padding bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <forestvm/core/bytecode.hpp>

namespace forestvm {

/// How the pairs of a walk are visited.
enum class WalkOrder : std::uint8_t {
  RowsOuter = 0,   ///< for row: for tree
  TreesOuter = 1,  ///< for tree: for row
};

/// How a walk knows that it has arrived.
enum class WalkEnd : std::uint8_t {
  UntilLeaf = 0,  ///< `hops` hops without a leaf check, then hop by hop to a leaf
  Exact = 1,      ///< exactly `hops` hops, no leaf check at all
};

/// One way of walking a group of trees: what a walk instruction's walker operand names.
struct WalkerDesc {
  std::uint32_t group;  ///< row of the group table
  std::uint16_t hops;   ///< hops without a leaf check
  WalkEnd end;
  WalkOrder order;
  std::uint8_t interleaved_trees;  ///< walks in lockstep: trees x rows, each a power of two
  std::uint8_t interleaved_rows;
  std::uint8_t atomic;    ///< 1: leaves are added atomically, to sums that other threads add to
  std::uint8_t reserved;  ///< zero

  bool operator==(const WalkerDesc&) const = default;
};
static_assert(sizeof(WalkerDesc) == 12);

inline constexpr unsigned kMaxInterleave = 128;  ///< of interleaved_trees x interleaved_rows

/// Trees [tree_begin, tree_end), counted as the program orders them, in one layout. Its tree records are
/// trees[first_tree … first_tree + tree_end - tree_begin); its nodes a byte range of the nodes section, after
/// which come, where a layout keeps them aside, its leaves, a float32 each.
struct GroupDesc {
  Layout layout;
  std::uint8_t tile_size;    ///< most nodes of a tile; 1 in layouts of single nodes
  std::uint8_t reserved[2];  ///< zero
  std::uint32_t tree_begin;
  std::uint32_t tree_end;
  std::uint32_t first_tree;
  std::uint64_t node_offset;   ///< bytes from the start of the nodes section; a multiple of 64
  std::uint64_t node_count;    ///< nodes or tiles
  std::uint64_t leaf_count;    ///< leaves aside
  std::uint64_t first_number;  ///< of the leaf numbers: one for each leaf aside, or else for each node
};
static_assert(sizeof(GroupDesc) == 48);

/// One tree of a group.
struct TreeDesc {
  std::uint32_t first_node;  ///< the root, counted from the group's first node
  std::uint32_t node_count;  ///< slots, padding included
  std::uint32_t first_leaf;  ///< of the leaves aside, counted from the group's first
  std::uint32_t leaf_count;
  std::uint32_t output;  ///< the raw output its leaves add to
  std::uint32_t depth;   ///< hops from the root to the deepest slot
  std::uint32_t number;  ///< the tree's number in the model
};
static_assert(sizeof(TreeDesc) == 28);

/// How often an accumulator exists: a shared one once; a private one once per iteration of its loop and copy
/// of its parent.
struct AccumulatorDesc {
  std::uint32_t parent;      ///< the accumulator it is reduced into; its own number if it is not private
  std::uint32_t iterations;  ///< of the parallel loop, at most; 1 if it is not private
  std::uint32_t copies;      ///< iterations x the parent's copies
  std::uint32_t stored_in;   ///< the accumulator in whose first copies it lies; its own number if in none
  AccumulatorKind kind;
  std::uint8_t reserved[3];  ///< zero

  bool operator==(const AccumulatorDesc&) const = default;
};
static_assert(sizeof(AccumulatorDesc) == 20);

inline constexpr unsigned kMaxTileSize = 8;
inline constexpr unsigned kMaxTileShapes = 4096;
inline constexpr std::uint8_t kTileExit = 0x80;  ///< in a TileShape: the walk leaves the tile

/// The binary tree that the nodes of a tile form. Node 0 is the tile's root; an entry is a later node of the
/// tile, or kTileExit plus the number of the way out, from 0 to `size`. The first shape of a program has no
/// nodes and one way out: it is what a leaf is among tiles.
struct TileShape {
  std::uint8_t size;
  std::uint8_t left[kMaxTileSize];
  std::uint8_t right[kMaxTileSize];

  bool operator==(const TileShape&) const = default;
};
static_assert(sizeof(TileShape) == 17);

/// A node's feature word: the feature number and two flags.
inline constexpr std::uint32_t kFeatureMask = 0x3fffffff;
inline constexpr std::uint32_t kMissingLeft = 0x40000000;
inline constexpr std::uint32_t kLeaf = 0x80000000;
inline constexpr std::uint32_t kMaxFeatures = kFeatureMask + 1;

/// What walks need to know of a group.
struct GroupData {
  const std::byte* nodes;     ///< the group's first
  const float* leaves;        ///< aside; the group's first
  const TreeDesc* trees;      ///< record of the group's first tree
  const std::uint8_t* exits;  ///< for each tile shape and each of 256 outcomes, the way out
  std::uint32_t tree_count;
  std::uint32_t tile_size;
};

}  // namespace forestvm
