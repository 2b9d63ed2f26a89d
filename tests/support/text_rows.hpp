// Rows of text for tests: a CSV file with a header, in which texts are quoted.
#pragma once

#include <filesystem>
#include <vector>

#include <forestvm/model.hpp>

namespace forestvm::support {

/// Reads the rows; an empty cell of a number is NaN. A text of a hashed feature becomes its code, one of a feature with
/// named categories its number, or NaN if it is empty. Throws std::runtime_error if the columns are not the model's
/// features in order, or a cell is no number.
std::vector<double> read_text_rows(const std::filesystem::path& file, const Model& model);

}  // namespace forestvm::support
