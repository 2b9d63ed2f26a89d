// Reads the number that a cell of text stands for: a decimal number, true or false, or a missing value. It does not
// depend on the locale.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <forestvm/result.hpp>

#include "cli/io/table.hpp"

namespace forestvm::cli {

/// Returns the float64 number nearest to a decimal number. As float32, it is that number rounded once more, because
/// trainers get tables as float64 numbers and round them too. Numbers beyond the range become inf or 0 of the same
/// sign. Accepts nan, inf and infinity in any case. Returns nothing for any other text, including an empty one. Defined
/// for float and double.
template <class Number>
std::optional<Number> parse_number(std::string_view text);

/// Returns the number in a text that is to stand for a missing value; nothing for texts that parse_number does not
/// read.
std::optional<MissingNumber> parse_missing(std::string_view text);

/// Sets `value` to the value of a cell: NaN if it is empty, one of the form's words for missing values, or equal to the
/// form's missing number; 1 or 0 for true or false in any case; otherwise the number. Returns false for other texts,
/// whose error is no_value. Defined for float and double.
template <class Number>
bool read_cell(std::string_view text, const RowForm& form, Number& value);

/// Returns the error for a text that is no value.
Error no_value(std::string_view place, std::string_view text);

/// Returns the named categories of a feature; null if it has none.
const NamedCategories* named_categories(const RowForm& form, std::size_t feature);

/// Returns whether the cells of a feature are texts that stand by the hash codes of their categories.
bool is_hashed(const RowForm& form, std::size_t feature);

/// Sets `value` to the value of a cell of a feature. `whole` is the text with the spaces around it. A hashed feature
/// has the code of the whole text. Another one without named categories has the value that read_cell reads. Otherwise
/// the value is the code of the first category that matches: by the whole text of the cell, then by the text without
/// the spaces around it, then, if all names are numbers, by the number. A word for missing values that is not a name is
/// missing.
template <class Number>
bool read_feature(std::string_view text, std::string_view whole, std::size_t feature, const RowForm& form,
                  Number& value);

/// Returns the error for a cell of a feature that read_feature does not read.
Error no_value(std::string_view place, std::string_view text, std::size_t feature, const RowForm& form);

}  // namespace forestvm::cli
