// Rules of accumulators. They prove that inside parallel loops over trees only an accumulator that was privatized for
// the innermost of them is written, so iterations never share one, and that each instruction finds the kind of sums it
// takes. Accumulators to which iterations add atomically, or which have an element for each tree, may be shared.
#pragma once

#include <array>

#include "vm/program/verify/code_ranges.hpp"

namespace forestvm::bytecode {

class AccumulatorRules : protected RangeRules {
 protected:
  explicit AccumulatorRules(const Program& program);

  Result<void> close_block(std::uint32_t partner);

  /// Returns whether accumulators that a loop over the range in `reg` made are still to be reduced.
  bool awaits_reduction(std::uint32_t reg) const;

  AccumulatorKind kind_of(std::uint32_t accumulator) const {
    return program_.accumulators()[accumulator].kind;
  }

  /// Checks that an accumulator holds sums, which may be of any type.
  Result<void> holds_sums(std::uint32_t accumulator) const;
  /// Checks that an accumulator holds scores, which transforms and outputs take.
  Result<void> holds_scores(std::uint32_t accumulator) const;

  /// Checks that an accumulator has a value here and that `rows` are rows.
  Result<void> is_live(std::uint32_t accumulator, std::uint32_t rows);
  /// Checks that nothing else writes an accumulator meanwhile.
  Result<void> touches(std::uint32_t accumulator, std::uint32_t rows);
  /// Checks that an accumulator may be written here, for these rows.
  Result<void> writes(std::uint32_t accumulator, std::uint32_t rows);
  /// Checks that an accumulator may be added to, atomically or not.
  Result<void> adds(std::uint32_t accumulator, std::uint32_t rows, bool atomic);

  /// Checks an accumulator that starts from the base scores, or to which they are added.
  Result<void> takes_base(const OperandsOf<Op::Init>& args);
  /// Checks that per-tree values are added to sums of the same type.
  Result<void> sums_trees(std::uint32_t to, std::uint32_t from) const;
  /// Checks an accumulator that is computed from another.
  Result<void> converts(std::uint32_t to, std::uint32_t from, std::uint32_t rows);

  Result<void> privatize(const OperandsOf<Op::Privatize>& args);
  Result<void> reduce(const OperandsOf<Op::ReduceDim>& args, bool in_place);

  /// Adds the memory of each accumulator to the map.
  void map_memory();

 private:
  struct Accumulator {
    bool live = false;
    std::uint32_t loop = kNoLoop;  ///< Pc of the parallel loop over trees in which it may be written.
    std::size_t depth = 0;         ///< Blocks that were open when it was privatized.
  };

  std::uint32_t of_trees() const;
  Result<void> form_fits(ReductionForm form, std::uint32_t width, Op loop) const;

  std::array<Accumulator, kAccumulators> accumulators_{};
};

}  // namespace forestvm::bytecode
