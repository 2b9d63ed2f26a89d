// One trainer's model under every schedule, target, batch size and number of threads: raw scores bit-equal to
// the trainer's, values within 2 units in the last place. What is refused is printed with the reason. A table
// of all models and schedules ends the run.
#pragma once

#include <cstddef>

#include "support/model_folders.hpp"

namespace forestvm::test {

using support::Answers;
using support::model_files;
using support::ModelFile;
using support::read_answers;
using support::zoo;

struct Budget {
  /// Hops per schedule, batch size and number of threads, by which rows are cut. Not cut: all rows in one
  /// batch with two threads, under the schedules that every model must pass; the others get 16 times as many
  /// hops.
  std::size_t hops = SIZE_MAX / 16;
  /// Schedules by day, others for every model; at night all.
  std::size_t schedules = SIZE_MAX;
};

/// Fails the current test where an answer differs; skips it if the model is refused.
void check_model_file(const ModelFile& file, const Budget& budget);

}  // namespace forestvm::test
