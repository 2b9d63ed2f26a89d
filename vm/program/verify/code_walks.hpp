// Rules of walks. They prove that the trees of a walk lie in the group of its walker, or, where the iterations of a
// loop select walkers, that each iteration has one and finds its trees in that walker's group. The CodeMap keeps the
// walkers. Walks that add leaves to sums go through trees in the model's order if the program has rounds, because a
// call for some rounds then takes a range of each group's trees.
#pragma once

#include <vector>

#include <forestvm/core/ranges.hpp>

#include "vm/program/verify/code_accumulators.hpp"

namespace forestvm::bytecode {

class WalkRules : protected AccumulatorRules {
 protected:
  explicit WalkRules(const Program& program) : AccumulatorRules(program) {}

  Result<void> walk(const OperandsOf<Op::Walk>& args);
  Result<void> leaves(const OperandsOf<Op::Leaves>& args);

 private:
  Result<void> walks(std::uint32_t trees, std::uint32_t walker, std::uint32_t select);
  Result<void> walks_group(std::uint32_t walker, const Range& trees) const;
  bool is_atomic(std::uint32_t walker) const { return program_.walkers()[walker].atomic != 0; }
  Result<void> walks_in_order();

  std::vector<std::uint8_t>
      in_order_{};  ///< For each group, whether its trees are known to be in the model's order.
};

}  // namespace forestvm::bytecode
