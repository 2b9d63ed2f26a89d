// Predictions in calls of some rows each, for tests that compare backends and schedules.
#pragma once

#include <cstddef>
#include <vector>

#include <forestvm/backend.hpp>

namespace forestvm::test {

/// Predicts in batches of `batch` rows. Numbers are float64, which holds those of every program exactly. Margins of
/// `options` are float64.
std::vector<double> predicted(const Predictor& predictor, const RowBlock& rows, OutputKind output,
                              const CallOptions& options, std::size_t batch);

}  // namespace forestvm::test
