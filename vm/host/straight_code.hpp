// The instructions that a call runs, one after the other, where it has no loops: calls of a few rows with a small
// forest spend a good part of their time on plans and outputs of other calls.
#pragma once

#include <array>
#include <optional>

#include <forestvm/core/bytecode.hpp>

#include "vm/host/machine.hpp"

namespace forestvm::host {

class StraightCode {
 public:
  StraightCode() = default;
  StraightCode(const StraightCode&) = delete;  // its machine refers to its steps
  StraightCode& operator=(const StraightCode&) = delete;

  /// Takes the instructions that interpret() would run for a pass. There are none if one of them is a loop, or if they
  /// are too many. The pass and the program must outlive them.
  void make(const LoadedProgram& loaded, const Pass& pass);

  /// Returns whether there are instructions.
  bool is_made() const { return machine_.has_value(); }

  /// Runs the instructions. The pass's rows and the memory of its results may be others than in make().
  void run();

 private:
  std::array<Inst, 12> steps_{};  ///< They end with a halt.
  std::optional<Machine> machine_{};
  ReadySteps ready_{};
};

}  // namespace forestvm::host
