// The meaning of a program's code: the ranges that its loops and slices make; for each instruction, the ranges that it
// takes, the walkers that it reaches and the calls for which it runs; and the memory that accumulators take. The
// verifier works it out and keeps it with the program, so that other readers of code need not follow registers, blocks
// and accumulators again. Implemented by vm/program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <forestvm/internal/axis.hpp>
#include <forestvm/program.hpp>

namespace forestvm {

inline constexpr std::uint32_t kNoRange = UINT32_MAX, kNoAccumulator = UINT32_MAX;

/// The rows of a call and the program's trees: the first two ranges of a map.
inline constexpr std::uint32_t kCallRows = 0, kAllTrees = 1;

/// The contents of a range register from the instruction that sets it to the end of its block. Ranges are
/// named by their numbers in the map.
struct RangeFacts {
  Axis axis = Axis::Rows;
  bool exact = false;            ///< Trees: the range is [lo, hi), not only a part of it.
  bool nonempty = false;         ///< True if the range has an element whenever it is set.
  std::uint32_t lo = 0, hi = 0;  ///< Trees: every element of the range lies in [lo, hi).
  std::uint32_t max_size = 0;    ///< Most elements of the range; UINT32_MAX if nothing bounds them.
  /// Number of the range that the innermost loop over this axis sets: the range's own number if it is that one,
  /// kCallRows or kAllTrees outside of loops. The range is the elements [from, to) of that iteration, cut at its
  /// end.
  std::uint32_t loop = 0;
  std::uint32_t from = 0, to = 0;
  std::uint32_t source = 0;  ///< Number of the range from which a loop or slice takes it.
  std::uint32_t step = 0;    ///< Step of the loop that set it; 0 if none did.
};

/// An interval of row counts, both ends included.
struct RowCounts {
  std::uint32_t least, most;
};

/// The facts about an instruction.
struct InstFacts {
  /// Numbers of the ranges that the instruction sets and takes, by its operands; kNoRange for operands that
  /// it lacks. An instruction that caches takes the iterations of the loop that it names.
  std::uint32_t out = kNoRange;
  std::uint32_t in = kNoRange;
  std::uint32_t rows = kNoRange;
  std::uint32_t trees = kNoRange;
  /// Range of the loop whose iterations select walkers; kNoRange if none does.
  std::uint32_t select = kNoRange;
  /// Rows of the walker table with which the instruction walks, one after the other: one, or one for each
  /// iteration of `select`; none if it walks nothing.
  std::uint32_t first_walker = 0;
  std::uint32_t walker_count = 0;
  /// Accumulator that gets the leaves of these walks; kNoAccumulator if none does.
  std::uint32_t walk_sums = kNoAccumulator;
  /// Row counts of the calls in which the instruction runs, by the plans around it.
  RowCounts calls{0, UINT32_MAX};
};

/// The memory that an accumulator takes in a call.
struct AccumulatorMemory {
  std::uint32_t storage;      ///< Number of the accumulator in whose memory it lies, often its own.
  std::uint32_t copy_stride;  ///< Distance from one of its copies to the next, in copies of `storage`.
  std::size_t width;          ///< Elements of a row: one for each output, or for each tree.
  std::size_t copy_bytes;     ///< Bytes of a row in all of its copies; 0 if it lies in the memory of another.
  bool of_trees;              ///< True if it holds leaves, and only calls for outputs of single trees use it.
};

struct CodeMap {
  std::vector<RangeFacts> ranges;
  std::vector<InstFacts> insts;                 ///< Facts of each instruction, by pc.
  std::vector<AccumulatorMemory> accumulators;  ///< Memory of each accumulator, by number.
};

/// Returns the most elements of a range in a call of `call_rows` rows.
std::uint32_t max_size(const CodeMap& map, std::uint32_t range, std::uint32_t call_rows);

/// Returns the map of a program that was loaded with full verification or can be trusted. The program and its copies
/// have one map: verification makes it, or else the first call of this function, which any thread may make.
const CodeMap& code_map(const Program& program);

}  // namespace forestvm
