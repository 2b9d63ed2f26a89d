// Rows of text for tests: a CSV file with a header, in which texts are quoted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <forestvm/model.hpp>

namespace forestvm::support {

/// Returns the cells of a line, without quotes.
std::vector<std::string> cells_of(const std::string& line);

/// Reads the rows as float or double. A text of a feature with named categories becomes its number, an empty cell NaN.
/// Throws std::runtime_error if the columns are not the model's features in order, or a cell is no number.
template <class Number = float>
std::vector<Number> read_text_rows(const std::filesystem::path& file, const Model& model);

}  // namespace forestvm::support
