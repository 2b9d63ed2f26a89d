// Rules of range registers. They prove that a register is read only where it is set, and that every range is taken from
// the innermost enclosing loop over the same axis: so iterations of a parallel loop over rows touch different rows, and
// the work of a program is bounded by rows x trees x instructions. What they find out about ranges is the CodeMap.
#pragma once

#include <array>

#include <forestvm/core/ranges.hpp>

#include "vm/program/verify/code_blocks.hpp"

namespace forestvm::bytecode {

/// Stands for the pc of a loop that there is not.
inline constexpr std::uint32_t kNoLoop = UINT32_MAX;

class RangeRules : protected BlockRules {
 protected:
  explicit RangeRules(const Program& program);

  /// Checks that a register may be read and holds a range over `axis`, which the facts of the instruction then name.
  Result<void> reads(std::uint32_t reg, Axis axis);

  Result<void> open_loop(const Inst& inst);
  Result<void> close_block(std::uint32_t partner);

  /// Takes a slice. It may replace a slice of the same block, as in the iterations of an unrolled loop, unless its
  /// register is `awaited`: accumulators that a loop over its range made are still to be reduced.
  Result<void> take_slice(const OperandsOf<Op::Slice>& args, bool awaited);

  /// Checks that `loop` is a loop whose block is open, over this axis.
  Result<void> caches(std::uint32_t loop, Axis axis);

  /// Returns the pc of the innermost open parallel loop over trees, or of the one `outward` further out; kNoLoop if
  /// there is none.
  std::uint32_t innermost_tree_loop(unsigned outward = 0) const {
    return enclosing_loop(is_parallel, Axis::Trees, outward);
  }

  /// Returns the most iterations of a loop whose block is open.
  std::uint32_t loop_iterations(std::uint32_t loop) const;

  bool is_live(std::uint32_t reg) const { return registers_[reg].live; }
  /// Returns whether the range in `reg` is a part of an iteration of the loop that set `loop`.
  bool is_within(std::uint32_t reg, std::uint32_t loop) const { return registers_[reg].within >> loop & 1; }
  const RangeFacts& range_in(std::uint32_t reg) const { return map_.ranges[registers_[reg].range]; }
  std::uint32_t range_number(std::uint32_t reg) const { return registers_[reg].range; }

 private:
  struct Register {
    bool live = false;
    bool slice = false;        ///< True if a slice instruction set it.
    std::size_t depth = 0;     ///< Blocks that were open when it was set.
    std::uint32_t within = 0;  ///< Loop registers of which its range is a part, itself included, as bits.
    std::uint32_t range = 0;   ///< Number of its range in the map.
  };

  Result<void> reads(std::uint32_t reg) const;
  Result<void> can_set(std::uint32_t reg) const;
  void set(std::uint32_t reg, std::uint32_t in, RangeFacts range, bool slice);
  std::uint32_t enclosing_loop(bool (*counts)(Op), Axis axis, unsigned outward) const;

  std::array<Register, kRangeRegisters> registers_{};
};

}  // namespace forestvm::bytecode
