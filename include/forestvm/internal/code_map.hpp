// What the code of a program means: the ranges that its loops and slices make, which of them each instruction
// takes, which walkers it reaches and for which calls it runs. The verifier works it out; whoever reads code
// asks here and need not follow registers and blocks again. Implemented by vm/program.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/program.hpp>

namespace forestvm {

enum class Axis : std::uint8_t { Rows, Trees };

inline constexpr std::uint32_t kNoRange = UINT32_MAX;

/// The rows of a call and the program's trees: the first two ranges of a map.
inline constexpr std::uint32_t kCallRows = 0, kAllTrees = 1;

/// What a range register holds from the instruction that sets it to the end of its block. Ranges are named by
/// their numbers in the map.
struct RangeFacts {
  Axis axis = Axis::Rows;
  bool exact = false;            ///< trees: it is [lo, hi), not only a part of that
  bool nonempty = false;         ///< it has an element whenever it is set
  std::uint32_t lo = 0, hi = 0;  ///< trees: all that it holds lies in [lo, hi)
  std::uint32_t max_size = 0;    ///< UINT32_MAX if nothing bounds it
  /// The iteration of the innermost loop over the axis that it is a part of: its own number if a loop set it,
  /// or kCallRows or kAllTrees. Its elements are [from, to) of that, cut where that ends.
  std::uint32_t loop = 0;
  std::uint32_t from = 0, to = 0;
  std::uint32_t source = 0;  ///< set by a loop or slice: the range that it is taken from
  std::uint32_t step = 0;    ///< set by a loop: its step; otherwise 0
};

/// Numbers of rows, both included.
struct RowCounts {
  std::uint32_t least, most;
};

/// What is known of an instruction.
struct InstFacts {
  /// The ranges that it sets and takes, by its operands; kNoRange for operands that it lacks.
  std::uint32_t out = kNoRange;
  std::uint32_t in = kNoRange;
  std::uint32_t rows = kNoRange;
  std::uint32_t trees = kNoRange;
  std::uint32_t select = kNoRange;  ///< the loop that selects walkers, if one does
  /// The rows of the walker table that it walks with, one after the other: one, or one for each iteration of
  /// `select`; none if it walks nothing.
  std::uint32_t first_walker = 0;
  std::uint32_t walker_count = 0;
  RowCounts calls{0, UINT32_MAX};  ///< the row counts of the calls in which it runs, by the plans around it
};

struct CodeMap {
  std::vector<RangeFacts> ranges;
  std::vector<InstFacts> insts;  ///< of each instruction
};

/// The map of a program that was loaded with full verification, or is rightly trusted.
CodeMap code_map(const Program& program);

}  // namespace forestvm
