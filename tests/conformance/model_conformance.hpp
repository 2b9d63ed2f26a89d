// One trainer's model under every schedule, target, batch size and number of threads: raw scores equal the
// trainer's bit for bit, values are within 2 units in the last place. Refusals are printed with the reason.
// The run ends with a table of all models and schedules.
#pragma once

#include <cstddef>

#include "support/model_folders.hpp"

namespace forestvm::test {

using support::Answers;
using support::model_files;
using support::ModelFile;
using support::zoo;

struct Budget {
  /// Steps per schedule, batch size and number of threads; limits the number of rows. The schedules that every
  /// model must pass also run all rows in one batch with two threads; other schedules are allowed 16 times
  /// this number.
  std::size_t steps = SIZE_MAX / 16;
  /// Number of schedules by day, drawn differently for each model; at night all run.
  std::size_t schedules = SIZE_MAX;
};

/// Fails the current test if an answer differs; skips it if the model is refused.
void check_model_file(const ModelFile& file, const Budget& budget);

}  // namespace forestvm::test
