// The host machine: what interpret() runs a program on. In: a loaded program and one pass of a call (rows
// that fit the context's scratch). Out: predictions in the caller's buffer. Copied for each iteration of a
// parallel loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/core/interpret.hpp>
#include <forestvm/program.hpp>

#include "vm/host/executor.hpp"
#include "vm/host/walkers/walk.hpp"

namespace forestvm::host {

/// A walker instruction's target, resolved when the program is loaded.
struct LoadedWalker {
  WalkFunction function;
  WalkTask task;  ///< what is known before the call: nodes, trees, hops, order
};

/// What all calls share.
struct LoadedProgram {
  Program program;
  const ProgramMeta& meta;  ///< this and the next two: sections of the program, found once
  const Inst* code;
  std::span<const AccumulatorDesc> accumulators;
  std::vector<LoadedWalker> walkers;
  std::vector<float> base;
  std::unique_ptr<Executor> executor;  ///< null: parallel loops run inline
};

/// One pass of a call.
struct Pass {
  const float* rows;
  std::size_t row_stride;
  std::uint32_t row_count;
  OutputKind output;
  float* values;                       ///< Raw, Value: where this pass's first row goes
  std::int64_t* labels;                ///< Class: likewise
  bool in_place;                       ///< a0 is `values` itself
  float* accumulators[kAccumulators];  ///< row 0 of the first copy of each
};

class Machine {
 public:
  Machine(const LoadedProgram& loaded, const Pass& pass);

  Range ranges[kRangeRegisters];

  bool wants(OutputKind output) const { return pass_->output == output; }
  void parallel(const Inst& par, std::uint32_t body);
  void init(const Inst& inst);
  void zero(const Inst& inst);
  void add_base(const Inst& inst);
  void privatize(const Inst& inst);
  void walk(const Inst& inst);
  void reduce_dim(const Inst& inst);
  void transform(const Inst& inst);
  void store(const Inst& inst);
  void label(const Inst& inst);

 private:
  float* accumulator_row(std::uint32_t accumulator, std::uint32_t copy, std::uint32_t row) const {
    return pass_->accumulators[accumulator] + (std::size_t{copy} * pass_->row_count + row) * outputs_;
  }
  float* accumulator_row(std::uint32_t accumulator, std::uint32_t row) const {
    return accumulator_row(accumulator, copies_[accumulator], row);
  }

  const LoadedProgram* loaded_;
  const Pass* pass_;
  std::size_t outputs_;
  std::uint32_t copies_[kAccumulators] = {};  ///< which copy of each accumulator this machine writes
};

}  // namespace forestvm::host
