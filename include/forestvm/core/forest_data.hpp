// The records of a program's forest data, as they lie in a file, in memory and on a device.
// Little-endian, fixed sizes, no padding bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <forestvm/core/bytecode.hpp>

namespace forestvm {

/// The orders in which a walk visits its pairs of trees and rows.
enum class WalkOrder : std::uint8_t {
  RowsOuter = 0,   ///< For each row, one tree after the other.
  TreesOuter = 1,  ///< For each tree, one row after the other.
};

/// The ways in which a walk knows that it has reached a leaf.
enum class WalkEnd : std::uint8_t {
  UntilLeaf = 0,  ///< `steps` steps without a leaf check, then steps with a check until a leaf.
  Exact = 1,      ///< Exactly `steps` steps, without any leaf check.
};

/// How the trees of a group are walked. The walker operand of a walk instruction names one.
struct WalkerDesc {
  std::uint32_t group;  ///< Row of the group table.
  std::uint16_t steps;  ///< Steps without a leaf check.
  WalkEnd end;
  WalkOrder order;
  std::uint8_t interleaved_trees;  ///< Trees, a power of two, whose walks go in lockstep.
  std::uint8_t interleaved_rows;   ///< Rows, a power of two, whose walks through these trees go in lockstep.
  std::uint8_t atomic;             ///< 1: leaves are added atomically, to sums that other threads add to.
  std::uint8_t reserved;           ///< Zero.

  bool operator==(const WalkerDesc&) const = default;
};
static_assert(sizeof(WalkerDesc) == 12);

/// Most walks in lockstep: interleaved_trees x interleaved_rows.
inline constexpr unsigned kMaxInterleave = 128;

/// A group: the trees [tree_begin, tree_end), in the program's order, in one layout. Its tree records are
/// trees[first_tree … first_tree + tree_end - tree_begin). Its nodes are a byte range of the nodes section.
/// If the layout keeps leaves aside, apart from the nodes, the group's leaves follow its nodes, a float32
/// each.
struct GroupDesc {
  Layout layout;
  std::uint8_t tile_size;    ///< Most nodes of a tile; 1 in layouts of single nodes.
  std::uint8_t reserved[2];  ///< Zero.
  std::uint32_t tree_begin;
  std::uint32_t tree_end;
  std::uint32_t first_tree;
  /// Bytes from the start of the nodes section to the first node; a multiple of 64.
  std::uint64_t node_offset;
  std::uint64_t node_count;  ///< Number of nodes, or of tiles.
  std::uint64_t leaf_count;  ///< Number of leaves that lie aside; 0 if the layout keeps none aside.
  /// Index of the group's first leaf number: one for each leaf aside, otherwise for each node.
  std::uint64_t first_number;
};
static_assert(sizeof(GroupDesc) == 48);

/// One tree of a group.
struct TreeDesc {
  std::uint32_t first_node;  ///< Index of the root, counted from the group's first node.
  std::uint32_t node_count;  ///< Number of slots, padding included.
  std::uint32_t first_leaf;  ///< Index of the tree's first leaf aside, counted from the group's first.
  std::uint32_t leaf_count;
  std::uint32_t output;  ///< Raw output to which its leaves add.
  std::uint32_t depth;   ///< Steps from the root to the deepest slot.
  std::uint32_t number;  ///< The tree's number in the model.
};
static_assert(sizeof(TreeDesc) == 28);

/// An accumulator and the number of its copies. A shared accumulator exists once; a private one exists once
/// for each iteration of its loop and each copy of its parent.
struct AccumulatorDesc {
  std::uint32_t parent;      ///< Accumulator into which it is reduced; its own number if it is not private.
  std::uint32_t iterations;  ///< Most iterations of the parallel loop; 1 if it is not private.
  std::uint32_t copies;      ///< Number of copies: iterations x the parent's copies.
  /// Accumulator in whose first copies it lies; its own number if it has memory of its own.
  std::uint32_t stored_in;
  AccumulatorKind kind;
  std::uint8_t reserved[3];  ///< Zero.

  bool operator==(const AccumulatorDesc&) const = default;
};
static_assert(sizeof(AccumulatorDesc) == 20);

inline constexpr unsigned kMaxTileSize = 8;
inline constexpr unsigned kMaxTileShapes = 4096;
/// Flag of an entry of a TileShape: the walk leaves the tile.
inline constexpr std::uint8_t kTileExit = 0x80;

/// The binary tree that the nodes of a tile form. Node 0 is the tile's root; an entry is a later node of the
/// tile, or kTileExit plus the number of an exit, from 0 to `size`. The first shape of a program has no
/// nodes and one exit: it is the shape of a leaf.
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

/// The data of a group that walks read.
struct GroupData {
  const std::byte* nodes;     ///< The group's first node.
  const float* leaves;        ///< The group's first leaf, if the layout keeps leaves aside.
  const TreeDesc* trees;      ///< Record of the group's first tree.
  const std::uint8_t* exits;  ///< Exit for each tile shape and each of 256 outcomes.
  std::uint32_t tree_count;
  std::uint32_t tile_size;
};

}  // namespace forestvm
