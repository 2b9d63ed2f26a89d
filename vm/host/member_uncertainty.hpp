// Computes the uncertainty of a row's prediction from the scores of a virtual ensemble's members, as CatBoost does.
#pragma once

#include <cstddef>

#include <forestvm/core/uncertainty.hpp>

namespace forestvm::host {

/// Turns what the second score of each member predicts, the logarithm of the standard deviation, into a variance.
void predict_variances(double* members, std::size_t count);

/// Writes the 2 or 3 numbers of a rule for the scores of `count` members of a row, which it changes.
void uncertainty_of(UncertaintyRule rule, double* members, std::size_t count, std::size_t outputs,
                    double* to);

}  // namespace forestvm::host
