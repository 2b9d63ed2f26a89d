// Rows for a model of which no data is at hand: drawn between its own thresholds, so that walks part as often
// as the forest lets them.
#pragma once

#include <cstddef>

#include <forestvm/program.hpp>

#include "cli/io/rows.hpp"

namespace forestvm::cli {

/// The seed is fixed: the same program gives the same rows everywhere. Each value lies in one of the
/// intervals that its feature's thresholds bound, each interval being as likely, and uniformly inside it; the
/// two outer intervals are as wide as the others on average. Features that no split uses are 0. None is
/// missing.
Rows draw_rows(const Program& program, std::size_t count);

}  // namespace forestvm::cli
