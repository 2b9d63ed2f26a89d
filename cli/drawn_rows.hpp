// Makes rows for a model whose data is not at hand. Values are drawn between the model's thresholds, so that different
// rows take different branches as often as the trees allow.
#pragma once

#include <cstddef>

#include <forestvm/program.hpp>

#include "cli/io/rows.hpp"

namespace forestvm::cli {

/// Draws `count` rows with a fixed seed: the same program gives the same rows everywhere. A feature's thresholds cut
/// its values into intervals. All intervals are equally likely, and values are uniform inside each. The two outer
/// intervals have the average width of the others. Features that no split uses are 0, values of hashed features are
/// whole numbers, and no value is missing.
Rows draw_rows(const Program& program, std::size_t count);

}  // namespace forestvm::cli
