// Reads the option --samples: training rows and their targets, from which a program computes quantiles, in two NPY
// arrays.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>
#include <forestvm/samples.hpp>

#include "cli/command.hpp"

namespace forestvm::cli {

extern const Option kSamplesOption;

/// Returns the names of the two files of a value "X.npy,y.npy". Returns a Usage error for other values.
Result<std::pair<std::string, std::string>> sample_files(const std::string& value);

/// Reads NPY arrays of the shapes (rows, features) and (rows,). Refuses what the reader of NPY refuses, targets in
/// several columns, and what Samples::make refuses.
Result<std::shared_ptr<const Samples>> read_samples(const std::string& value, const Model& model);

}  // namespace forestvm::cli
