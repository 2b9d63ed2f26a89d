// A case of the random differential test, and its judge: the reference predictor.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/model.hpp>
#include <forestvm/program.hpp>
#include <forestvm/schedule.hpp>

namespace forestvm::test {

struct RandomCase {
  Model model;
  Schedule schedule;
  std::vector<float> rows;
  std::vector<std::size_t> batches;
  unsigned threads = 1;
  std::string target = "auto";
  EmulatorOptions emulator;  ///< options of the emulator, for mapped schedules
  std::size_t padding = 0;   ///< number of values between two rows
  bool exact_sums = false;
  CompileOptions options;

  std::size_t row_count() const { return rows.size() / model.num_features; }
};

/// Compiles a case. A program that no launch accepts counts as refused.
Result<Program> compiled(const RandomCase& c);

/// Returns what is wrong with a case that compiles; empty for one that does not. Answers have the reference
/// predictor's bits or, if the contract does not promise bits, differ within the rounding of the sums.
std::string failure_of(const RandomCase& c);

}  // namespace forestvm::test
