// The instructions that a call runs, one after the other, where it has no loops: calls of a few rows with a small
// forest spend a good part of their time on plans and outputs of other calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <forestvm/core/bytecode.hpp>

#include "vm/host/machine.hpp"

namespace forestvm::host {

class StraightCode {
 public:
  /// Takes the instructions that interpret() would run on the machine. There are none if one of them is a loop, or if
  /// they are too many.
  void make(const Inst* code, const Machine& machine);

  /// Returns the instructions, which end with a halt; null if there are none.
  const Inst* begin() const { return is_made_ ? steps_.data() : nullptr; }

 private:
  std::array<Inst, 12> steps_{};
  bool is_made_ = false;
};

}  // namespace forestvm::host
