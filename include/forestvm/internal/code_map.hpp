// What the code of a program means: the ranges that its loops and slices make, and which of them each
// instruction takes. The verifier works it out; whoever reads it need not follow registers again.
#pragma once

#include <cstdint>
#include <vector>

namespace forestvm::bytecode {

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

/// The ranges that an instruction sets and takes, by their operands; kNoRange for operands that it lacks.
struct RangeOperands {
  std::uint32_t out = kNoRange;
  std::uint32_t in = kNoRange;
  std::uint32_t rows = kNoRange;
  std::uint32_t trees = kNoRange;
  std::uint32_t select = kNoRange;  ///< the loop that selects walkers, if one does
};

struct CodeMap {
  std::vector<RangeFacts> ranges;
  std::vector<RangeOperands> operands;  ///< of each instruction
};

}  // namespace forestvm::bytecode
