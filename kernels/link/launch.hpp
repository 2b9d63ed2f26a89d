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
#include <forestvm/core/leaf_outputs.hpp>
#include <forestvm/core/leaf_vectors.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/core/transform.hpp>

#include "kernels/link/kind_tables.hpp"
#include "kernels/link/known_code.hpp"
#include "kernels/link/linked_inst.hpp"

namespace forestvm::kernels {

/// Number of dimensions of a launch: the rows of dimensions.def.
inline constexpr unsigned kDimensions = 6;
/// Number of the grid's dimensions, which come first; the other dimensions are a block's.
inline constexpr unsigned kGridDimensions = 3;

/// Most areas of shared memory that hold trees at once.
inline constexpr unsigned kStagedTrees = 4;

/// Bytes of the largest copy that a thread makes into shared memory at once, and the alignment of bulk copies.
/// A copy of trees begins where the alignment allows it, less than this number of bytes before the first tree.
inline constexpr unsigned kCopyAlignment = 16;

/// A group of trees on the device.
struct LaunchGroup {
  GroupData data;
  std::uint32_t first_tree;  ///< number of the group's first tree among the program's
  std::uint32_t node_bytes;
  Layout layout;
  bool interleaved;  ///< true if node i of each tree lies beside node i of the others
};

/// Most walks that a thread makes in lockstep: each takes registers.
inline constexpr unsigned kMaxLockstep = 4;

/// Number of steps that a walk takes between two questions whether to go on.
inline constexpr unsigned kUnrolledSteps = 4;

/// Returns the number of a tile of `trees` x `rows` walks in lockstep, each of 1 to 15.
FVM_HOST_DEVICE constexpr std::uint8_t tile(unsigned trees, unsigned rows) {
  return static_cast<std::uint8_t>(trees << 4 | rows);
}

/// How the trees of a group are walked.
struct LaunchWalker {
  std::uint32_t group;
  std::uint32_t steps;           ///< WalkerDesc::steps
  const std::uint32_t* numbers;  ///< numbers of the group's leaves
  const double* wide_leaves;     ///< float64 outputs, indexed as `numbers`; null if the program has none
  WalkEnd end;
  WalkOrder order;
  std::uint8_t tile;  ///< tile(trees, rows): trees x rows walks go in lockstep, at most kMaxLockstep
  bool atomic;
  /// Steps that are left when kUnrolledSteps have been taken as often as possible, and kUntilLeaf if leaves follow at
  /// different depths. Walks ask only if it is not 0.
  std::uint8_t rest;

  static constexpr std::uint8_t kUntilLeaf = 1U << 7;
};

/// Copies of a group's trees into shared memory, which a cache instruction of a phase makes in each iteration of
/// its loop.
struct LaunchCopy {
  /// RangeIn and Step of the loop that sets the trees' register; used if `ahead`.
  std::uint32_t in, step;
  std::uint32_t offset;        ///< bytes from the beginning of shared memory to the first buffer
  std::uint32_t buffer_bytes;  ///< bytes of a buffer; if `ahead`, a second buffer follows the first
  /// Bytes from the beginning of shared memory to the barriers for bulk copies, of which each buffer has one;
  /// used if `bulk`.
  std::uint32_t barriers;
  /// True if there are two buffers: the trees of an iteration are copied to one of them while the trees of the
  /// iteration before are walked in the other.
  bool ahead;
  /// True if the trees of an iteration lie in one piece, so that they can be copied in bulk.
  bool bulk;
};

/// Bytes of a barrier that bulk copies arrive at.
inline constexpr unsigned kBulkBarrierBytes = 8;

/// An accumulator of a launch, and the address at which it lies in global memory or in the block's shared memory.
struct LaunchAccumulator {
  std::byte* memory;        ///< row 0 of the first copy, in global memory; null if it lies in shared memory
  std::size_t copy_bytes;   ///< bytes from one of its copies to the next
  std::uint32_t row_bytes;  ///< bytes from a row to the next
  std::uint32_t
      offset;  ///< bytes from the beginning of shared memory to the block's first row; 0 in global memory
  std::uint32_t parent;
  std::uint32_t iterations;
  std::uint32_t width;  ///< elements from a row to the next
  AccumulatorKind kind;
  /// True if it lies in copies of another accumulator; that accumulator's Privatize zeroes them.
  bool stored_elsewhere;
  bool starts_alike;  ///< True if it has float32 sums, and all rows begin at the same numbers.
  bool gives_values;  ///< True if it has float32 sums, and each row's only one is the row's only result.
};

/// The program's tables on the device.
struct LaunchProgram {
  const LaunchGroup* groups;
  const LaunchWalker* walkers;
  /// Numbers of the trees that add to output 0, then to output 1, ..., each in the model's order; null if tree t adds
  /// to output t modulo num_outputs.
  const std::uint32_t* output_trees;
  /// Where the trees of each output begin in output_trees, and where they end.
  const std::uint32_t* output_begins;
  LeafVectors vectors;             ///< vectors of leaves, which sum_trees adds
  LeafOutputs functions;           ///< functions of leaves, whose outputs sum_trees adds
  const EncodedFeature* features;  ///< features that are encoded as ranks
  const float* ranks;
  const ColumnDesc* columns;
  const CategoryColumn* categories;  ///< categorical columns, which are the last of the columns
  const std::uint32_t* category_words;
  std::uint32_t feature_count, column_count, category_count;
  std::uint32_t row_width, num_outputs, num_trees;
  TransformParameters parameters;
  SumScale scale;
  double score_scale;  ///< factor of sums before the base is added: Model::scale
  Transform transform;
  Pair pair;
  const KindTables* kinds;  ///< Tables of the kernel of kinds.
  bool any_order;  ///< true if rounded sums may be added in any order, although their bits depend on it
};

/// Most blocks of grid.x in a launch whose blocks of grid.y join: calls of more rows take a launch more, which costs
/// them little.
inline constexpr std::uint32_t kMostJoined = 1024;

/// Trees [begin, end).
struct TreeRange {
  std::uint32_t begin, end;
};

/// One pass of a call.
struct LaunchPass {
  const float* rows;
  std::size_t row_stride;  ///< floats from a row to the next
  /// Values of the features that functions of leaves read, one row after the other; null if `rows` holds them.
  const double* leaf_values;
  std::uint32_t row_count;
  /// The numbers from which the sums of row r begin, one for each output, from base[r * base_stride] on: base scores,
  /// which all rows share, or margins of the call. For contributions that begin with margins, or are of some rounds:
  /// the expected scores. For quantiles: the quantiles of the call.
  const double* base;
  std::uint32_t base_stride;
  /// Trees that are walked, by the program's numbers; {0, 0}: all. Otherwise Launch::copy_count is not 0, so that walks
  /// without copies of trees do without a test of their own.
  TreeRange walked;
  TreeRange added;            ///< trees of the call's rounds, by the model's numbers
  std::uint32_t turn;         ///< added.begin modulo num_outputs
  std::uint32_t value_width;  ///< numbers of a row in `values` or `wide_values`
  Pair pair;                  ///< the numbers that a row's only score gives
  OutputKind output;
  const std::uint8_t* codes;  ///< rank codes of the pass's rows
  std::uint8_t* encode_to;    ///< memory of `codes`, to which rows are encoded; null if they came encoded
  float* values;              ///< results in float32, for outputs Raw and Value; null otherwise
  double* wide_values;        ///< results in float64, for outputs Raw and Value; null otherwise
  std::int64_t* labels;       ///< results, for output Class; null otherwise
  /// numbers of leaves: results for output Leaf, in `workspace` if an output is computed from them
  std::int32_t* leaves;
  /// For each block of grid.x, how many of the blocks that join there have come: all 0 between launches.
  std::uint32_t* arrived;
  std::byte* workspace;  ///< memory for contributions of each kind, virtual ensembles and quantiles
  double margin;         ///< EarlyStop::margin, for calls that stop early
  /// The call's rounds, and the number of them from one stage or check of an early stop to the next.
  std::uint32_t first_round, end_round, every;
  std::uint32_t ensembles;  ///< virtual ensembles of the call; 0 if it asks for none
};

/// Most threads of a block, which Sharing has room for.
inline constexpr std::uint32_t kMaxBlockThreads = 1024;

/// How the threads of a block share work: threads that are in the same iterations of all maps are peers. The thread at
/// (x, y, z) of the block is number x * x_step + y * y_step + z * z_step of `count` peers. Linking knows it for every
/// point of the code, and packs it into a word.
struct Sharing {
  std::uint32_t count = 1;
  std::uint32_t x_step = 0, y_step = 0, z_step = 0;

  FVM_HOST_DEVICE constexpr std::uint32_t word() const {
    return count | x_step << 11 | y_step << 12 | z_step << 22;
  }
  FVM_HOST_DEVICE static constexpr Sharing of(std::uint32_t word) {
    return {word & 2047, word >> 11 & 1, word >> 12 & 1023, word >> 22};
  }
};

/// The most instructions that a phase may have. A launch of HIP has 4096 bytes for its arguments, of which
/// the compiler takes up to 256 for hidden ones.
inline constexpr std::uint32_t kMaxPhaseCode = 178;

struct Launch {
  LaunchProgram program;
  LaunchPass pass;
  LaunchAccumulator accumulators[kAccumulators];
  LaunchCopy copies[kStagedTrees];
  std::uint32_t copy_count;
  std::uint32_t peers;           ///< Sharing::word() before the first instruction
  std::uint32_t block_rows;      ///< number of the range register that holds all rows of a block
  std::uint32_t rows_per_block;  ///< number of the pass's rows that r0 holds in a block; 0: r0 holds all rows
  KnownCode known;               ///< if it is one, its parts are accumulator known::kParts
  LaunchWalker walker;  ///< of known code, which has one walk: loading it from a table would take time
  LaunchGroup group;    ///< the group that this walker walks
  LinkedInst code[kMaxPhaseCode];
};
static_assert(sizeof(Launch) + 256 <= 4096);

/// The part of rows that lies in shared memory.
enum class StagedAs : std::uint8_t {
  Values,
  Codes,         ///< rank codes, copied from global memory
  EncodedCodes,  ///< rank codes that the block makes there; copied if the call's rows came encoded
};

}  // namespace forestvm::kernels
