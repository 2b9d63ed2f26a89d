// Rows for a model without data: drawn between its own thresholds, so that walks part as often as the forest
// allows.
#pragma once

#include <cstddef>

#include <forestvm/program.hpp>

#include "cli/io/rows.hpp"

namespace forestvm::cli {

/// Draws `count` rows with a fixed seed: the same program gives the same rows everywhere. Each value lies in
/// one of the intervals between its feature's thresholds, all equally likely, and uniformly inside it; the
/// two outer intervals have the average width of the others. Features that no split uses are 0, hashed
/// features whole numbers. No value is missing.
Rows draw_rows(const Program& program, std::size_t count);

}  // namespace forestvm::cli
