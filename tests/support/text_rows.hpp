// Rows of text for tests: a CSV file with a header, in which texts are quoted.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <forestvm/model.hpp>

namespace forestvm::support {

/// Takes the next line off a text, as cells without quotes. Quoted cells may hold commas, line ends and doubled quotes.
std::vector<std::string> take_csv_line(const std::string& text, std::size_t& at);

/// Reads the rows, with numbers in the model's row type; an empty cell of a number is NaN. A text of a hashed feature
/// is its code, one of a feature with named categories its number, or NaN if it is empty. Throws std::runtime_error if
/// the columns are not the model's features in order, or a cell is no number.
std::vector<double> read_text_rows(const std::filesystem::path& file, const Model& model);

}  // namespace forestvm::support
