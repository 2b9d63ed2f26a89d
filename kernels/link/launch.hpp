// A kernel's argument: the linked code of one phase of a program, where the program's tables and the
// call's rows and results lie on the device, and where the sums go. Made by link.cpp, read by
// thread_machine.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/categories.hpp>
#include <forestvm/core/encoder.hpp>
#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/core/transform.hpp>

#include "kernels/link/linked_inst.hpp"

namespace forestvm::kernels {

inline constexpr unsigned kDimensions = 6;
inline constexpr unsigned kGridDimensions = 3;  ///< the first of them

/// Most areas of shared memory that hold trees at once.
inline constexpr unsigned kStagedTrees = 4;

/// Bytes of the largest copies that threads make into shared memory, and what bulk copies are aligned to. A
/// copy of trees begins fewer bytes before the first of them.
inline constexpr unsigned kCopyAlignment = 16;

/// A group of trees on the device.
struct LaunchGroup {
  GroupData data;
  std::uint32_t first_tree;  ///< the group's first, as the program counts trees
  std::uint32_t node_bytes;
  Layout layout;
  bool interleaved;  ///< node i of each tree beside node i of the others
};

/// Walks in lockstep that a thread makes at most: each takes registers.
inline constexpr unsigned kMostLockstep = 4;

/// One way of walking a group.
struct LaunchWalker {
  std::uint32_t group;
  std::uint32_t hops;            ///< WalkerDesc::hops
  const std::uint32_t* numbers;  ///< of the group's leaves
  const double* wide_leaves;     ///< their outputs in float64; null if the program has none
  WalkEnd end;
  WalkOrder order;
  std::uint8_t trees, rows;  ///< walks in lockstep
  bool atomic;
};

/// Copies of a group's trees into shared memory, as a phase's cache instruction makes them turn by turn.
struct LaunchCopy {
  std::uint32_t in, step;      ///< of the loop that sets the trees' register, where `ahead`
  std::uint32_t offset;        ///< of the first buffer, in shared memory
  std::uint32_t buffer_bytes;  ///< from it to the second, where `ahead`
  std::uint32_t barriers;      ///< in shared memory, a buffer's after the other's, where `bulk`
  bool ahead;  ///< two buffers: a turn's trees are copied while those of the turn before are walked
  bool bulk;   ///< a turn's trees lie in one piece
};

/// Bytes of a barrier that bulk copies arrive at.
inline constexpr unsigned kBulkBarrierBytes = 8;

/// An accumulator's place.
struct LaunchAccumulator {
  std::byte* memory;          ///< row 0 of the first copy, in global memory; null if it lies in shared memory
  std::uint32_t offset;       ///< in shared memory, bytes to the block's first row
  std::uint32_t copy_rows;    ///< rows from one copy to the next
  std::uint32_t copy_stride;  ///< copies of the memory it lies in from one of its own to the next
  std::uint32_t parent;
  std::uint32_t iterations;
  std::uint32_t width;  ///< elements of a row
  AccumulatorKind kind;
  bool stored_elsewhere;  ///< in copies of another accumulator, which is zeroed before it is reduced
};

/// The program's tables on the device.
struct LaunchProgram {
  const LaunchGroup* groups;
  const LaunchWalker* walkers;
  const double* base;                 ///< exact in the type of the scores
  const std::uint32_t* tree_outputs;  ///< by the tree's number in the model
  const EncodedFeature* features;     ///< that are encoded by ranks
  const float* ranks;
  const ColumnDesc* columns;
  const CategoryColumn* categories;  ///< of the last of the columns
  const std::uint32_t* category_words;
  std::uint32_t feature_count, column_count, category_count;
  std::uint32_t num_features, num_outputs, num_trees;
  TransformParameters parameters;
  SumScale scale;
  Transform transform;
  bool any_order;  ///< sums that rounding makes depend on their order may be made in any
};

/// One pass of a call.
struct LaunchPass {
  const float* rows;
  std::size_t row_stride;  ///< floats
  std::uint32_t row_count;
  OutputKind output;
  const std::uint8_t* codes;  ///< of the pass's rows
  std::uint8_t* encode_to;    ///< the same, before they are there; null: they came encoded
  float* values;              ///< Raw, Value
  double* wide_values;        ///< the same in float64, instead of `values`
  std::int64_t* labels;       ///< Class
  std::int32_t* leaves;       ///< Leaf
};

/// The most instructions that a phase may have. A launch of HIP has 4096 bytes for its arguments, of which
/// the compiler takes up to 256 for hidden ones.
inline constexpr std::uint32_t kMaxPhaseCode = 192;

struct Launch {
  LaunchProgram program;
  LaunchPass pass;
  LaunchAccumulator accumulators[kAccumulators];
  LaunchCopy copies[kStagedTrees];
  std::uint32_t copy_count;
  std::uint32_t block_rows;      ///< register of the rows of a whole block
  std::uint32_t rows_per_block;  ///< rows of the pass that r0 holds in each block; 0: r0 holds all
  LinkedInst code[kMaxPhaseCode];
};
static_assert(sizeof(Launch) + 256 <= 4096);

/// The part of rows that lies in shared memory.
enum class StagedAs : std::uint8_t {
  Values,
  Codes,         ///< copied from where they lie
  EncodedCodes,  ///< made there, if the call's rows did not come encoded
};

}  // namespace forestvm::kernels
