// See cell_value.hpp.
#include "cli/io/cell_value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <forestvm/internal/city_hash.hpp>
#include <forestvm/internal/formatted.hpp>

#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

/// The words for missing values unless --na says otherwise: the texts that pandas' read_csv takes, without those that
/// parse_number reads as NaN, and "?", with which the UCI repository and Weka mark them.
constexpr std::array<std::string_view, 15> kMissingWords = {
    "#N/A", "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "<NA>",
    "N/A",  "NA",       "NULL", "None",    "n/a",      "null",   "?"};

/// Returns whether a decimal number outside float64's range is too large, not too small.
bool is_huge(std::string_view number) {
  const std::size_t e = number.find_first_of("eE");
  const std::string_view digits = number.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return false;
  // The number of digits before the point: 1 for numbers from 1 to 9.99, 2 for 10 to 99.99.
  const auto magnitude = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  if (e == std::string_view::npos) return magnitude > 0;
  std::string_view power = number.substr(e + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  std::int64_t exponent = 0;
  const auto parsed = std::from_chars(power.data(), power.data() + power.size(), exponent);
  if (parsed.ec == std::errc::result_out_of_range) return !power.starts_with('-');
  // A number from 0.1 to 10 is inside the range and never comes here, so its side does not matter.
  return exponent > -magnitude;
}

/// Returns whether the text is `word`, whatever the case of its letters. `word` is in lower case.
bool is_word(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
  };
  return std::equal(text.begin(), text.end(), word.begin(), word.end(), same);
}

bool is_missing_word(std::string_view text, const RowForm& form) {
  if (!form.missing_words)
    return std::find(kMissingWords.begin(), kMissingWords.end(), text) != kMissingWords.end();
  return std::find(form.missing_words->begin(), form.missing_words->end(), text) != form.missing_words->end();
}

/// Sets `value` to the value of a text that is no number: NaN for a word for missing values, 1 or 0 for true or false.
template <class Number>
bool read_word(std::string_view text, const RowForm& form, Number& value) {
  const bool missing = is_missing_word(text, form), yes = is_word(text, "true");
  value = missing ? std::numeric_limits<Number>::quiet_NaN() : Number{yes ? 1.0F : 0.0F};
  return missing || yes || is_word(text, "false");
}

/// Does what parse_number does, but sets `value` and returns whether there is one, because returning an optional for
/// each cell took a tenth of the time of reading a table.
template <class Number>
bool read_number(std::string_view text, Number& value) {
  const bool plus = text.starts_with('+');
  if (plus) text.remove_prefix(1);
  if (text.empty() || (plus && text.front() == '-')) return false;
  if (text.back() == ')') return false;  // from_chars accepts nan(…), which readers of CSV refuse
  double nearest = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), nearest);
  if (end != text.data() + text.size() || code == std::errc::invalid_argument) return false;
  if (code == std::errc::result_out_of_range) {
    const bool negative = text.front() == '-';
    nearest = is_huge(negative ? text.substr(1) : text) ? std::numeric_limits<double>::infinity() : 0;
    if (negative) nearest = -nearest;
  }
  value = static_cast<Number>(nearest);
  return true;
}

}  // namespace

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value = 0;
  return read_number(text, value) ? std::optional(value) : std::nullopt;
}

template std::optional<float> parse_number<float>(std::string_view text);
template std::optional<double> parse_number<double>(std::string_view text);

std::optional<MissingNumber> parse_missing(std::string_view text) {
  const auto narrow = parse_number<float>(text);
  const auto wide = parse_number<double>(text);
  if (!narrow || !wide) return std::nullopt;
  return MissingNumber{*narrow, *wide};
}

template <class Number>
bool read_cell(std::string_view text, const RowForm& form, Number& value) {
  constexpr Number missing = std::numeric_limits<Number>::quiet_NaN();
  value = missing;
  if (text.empty()) return true;
  if (!read_number(text, value) && !read_word(text, form, value)) return false;
  if (form.missing && value == form.missing->as<Number>()) value = missing;
  return true;
}

template bool read_cell<float>(std::string_view text, const RowForm& form, float& value);
template bool read_cell<double>(std::string_view text, const RowForm& form, double& value);

const NamedCategories* named_categories(const RowForm& form, std::size_t feature) {
  const auto found = std::lower_bound(
      form.categories.begin(), form.categories.end(), feature,
      [](const NamedCategories& named, std::size_t sought) { return named.feature < sought; });
  return found != form.categories.end() && found->feature == feature ? &*found : nullptr;
}

namespace {

/// Returns the code of a cell; NaN if it is missing, nothing if it is refused. If names are texts, a number that is not
/// a name is refused, because it may be meant as a code.
std::optional<float> code_of(const NamedCategories& named, std::string_view text, std::string_view whole,
                             const RowForm& form) {
  constexpr float missing = std::numeric_limits<float>::quiet_NaN();
  for (const std::string_view name : {whole, text})
    if (const auto found = named.codes.find(std::string(name)); found != named.codes.end())
      return found->second;
  const auto number = parse_number<double>(text);
  if (text.empty() || is_missing_word(text, form) || (number && std::isnan(*number))) return missing;
  if (number && form.missing && *number == form.missing->wide) return missing;
  if (!number) return named.unseen;
  if (named.numbers.empty()) return std::nullopt;
  const auto equal = named.numbers.find(*number);
  return equal == named.numbers.end() ? named.unseen : std::optional(equal->second);
}

/// Does what read_cell does, but in rows that are float64 for the sake of hash codes only: a number, also one that
/// stands for a missing value, is compared as the float32 that the model sees.
bool read_narrow_cell(std::string_view text, const RowForm& form, double& value) {
  float narrow = 0;
  const bool is_value = read_cell(text, form, narrow);
  value = static_cast<double>(narrow);
  return is_value;
}

}  // namespace

bool is_hashed(const RowForm& form, std::size_t feature) {
  return std::binary_search(form.hashed.begin(), form.hashed.end(), feature);
}

template <class Number>
bool read_feature(std::string_view text, std::string_view whole, std::size_t feature, const RowForm& form,
                  Number& value) {
  if (!form.hashed.empty() && is_hashed(form, feature)) {
    value = static_cast<Number>(category_code(whole));
    return true;
  }
  const NamedCategories* const named = form.categories.empty() ? nullptr : named_categories(form, feature);
  if constexpr (std::is_same_v<Number, double>)
    if (named == nullptr && !form.hashed.empty()) return read_narrow_cell(text, form, value);
  if (named == nullptr) return read_cell(text, form, value);
  const std::optional<float> code = code_of(*named, text, whole, form);
  value = static_cast<Number>(code.value_or(0));
  return code.has_value();
}

template bool read_feature<float>(std::string_view text, std::string_view whole, std::size_t feature,
                                  const RowForm& form, float& value);
template bool read_feature<double>(std::string_view text, std::string_view whole, std::size_t feature,
                                   const RowForm& form, double& value);

Error no_value(std::string_view place, std::string_view text) {
  std::string pointed(text);
  std::replace(pointed.begin(), pointed.end(), ',', '.');
  if (pointed != text && parse_number<double>(pointed))
    return refused(place, "{} is not a number: a decimal point is the only mark that numbers have",
                   single_quoted(text));
  return refused(
      place, "{} is not a number, true or false (a missing value is an empty cell, nan, or a word of --na)",
      single_quoted(text));
}

Error no_value(std::string_view place, std::string_view text, std::size_t feature, const RowForm& form) {
  const NamedCategories* const named = named_categories(form, feature);
  if (named == nullptr && std::binary_search(form.nameless.begin(), form.nameless.end(), feature))
    return refused(
        place,
        "{} is not a number: the column has categories, which are numbers here, as pandas' cat.codes are, "
        "because {}",
        single_quoted(text),
        form.takes_codes ? "--categories codes says so" : "the model file has no names of them");
  if (named == nullptr) return no_value(place, text);
  return refused(
      place,
      "{} is not one of the {} names of the column's categories, which forestvm inspect lists (--categories codes reads codes)",
      single_quoted(text), named->codes.size());
}

}  // namespace forestvm::cli
