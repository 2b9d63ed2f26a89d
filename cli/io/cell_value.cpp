// See cell_value.hpp.
#include "cli/io/cell_value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

/// The texts that pandas' read_csv takes as missing, without those that parse_number reads as NaN; and the mark of
/// the UCI repository and of Weka.
constexpr std::array<std::string_view, 15> kMissingWords = {
    "#N/A", "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "<NA>",
    "N/A",  "NA",       "NULL", "None",    "n/a",      "null",   "?"};

/// Returns whether a decimal number outside float32's range is too large, not too small.
bool is_huge(std::string_view number) {
  const std::size_t e = number.find_first_of("eE");
  const std::string_view digits = number.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return false;
  const auto place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);  // 1 for 1 to 9.99
  if (e == std::string_view::npos) return place > 0;
  std::string_view power = number.substr(e + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  std::int64_t exponent = 0;
  const auto parsed = std::from_chars(power.data(), power.data() + power.size(), exponent);
  if (parsed.ec == std::errc::result_out_of_range) return !power.starts_with('-');
  // Numbers from 0.1 to 10 never come here, so it does not matter which side they count to.
  return exponent > -place;
}

/// Returns whether the text is `word`, which is in lower case, in any case.
bool is_word(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
  };
  return std::equal(text.begin(), text.end(), word.begin(), word.end(), same);
}

std::optional<bool> truth_of(std::string_view text) {
  if (is_word(text, "true")) return true;
  if (is_word(text, "false")) return false;
  return std::nullopt;
}

bool is_missing_word(std::string_view text, const RowForm& form) {
  if (!form.missing_words)
    return std::find(kMissingWords.begin(), kMissingWords.end(), text) != kMissingWords.end();
  return std::find(form.missing_words->begin(), form.missing_words->end(), text) != form.missing_words->end();
}

}  // namespace

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  const bool plus = text.starts_with('+');
  if (plus) text.remove_prefix(1);
  if (text.empty() || (plus && text.front() == '-')) return std::nullopt;
  if (text.back() == ')') return std::nullopt;  // from_chars accepts nan(…), no reader of CSV does
  Number value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || code == std::errc::invalid_argument) return std::nullopt;
  if (code == std::errc::result_out_of_range) {
    const bool negative = text.front() == '-';
    value = is_huge(negative ? text.substr(1) : text) ? std::numeric_limits<Number>::infinity() : Number{0};
    if (negative) value = -value;
  }
  return value;
}

template std::optional<float> parse_number<float>(std::string_view text);
template std::optional<double> parse_number<double>(std::string_view text);

std::optional<MissingNumber> parse_missing(std::string_view text) {
  const auto narrow = parse_number<float>(text);
  const auto wide = parse_number<double>(text);
  if (!narrow || !wide) return std::nullopt;
  return MissingNumber{*narrow, *wide};
}

std::span<const std::string_view> default_missing_words() { return kMissingWords; }

CellKind kind_of(std::string_view text, const RowForm& form) {
  if (text.empty()) return CellKind::Empty;
  if (parse_number<float>(text)) return CellKind::Number;
  return truth_of(text) || is_missing_word(text, form) ? CellKind::Word : CellKind::Name;
}

template <class Number>
std::optional<Number> cell_value(std::string_view text, const RowForm& form) {
  constexpr Number missing = std::numeric_limits<Number>::quiet_NaN();
  if (text.empty()) return missing;
  std::optional<Number> number = parse_number<Number>(text);
  if (!number && is_missing_word(text, form)) return missing;
  if (!number) number = truth_of(text);
  if (number && form.missing && *number == form.missing->as<Number>()) return missing;
  return number;
}

template std::optional<float> cell_value<float>(std::string_view text, const RowForm& form);
template std::optional<double> cell_value<double>(std::string_view text, const RowForm& form);

Error no_value(std::string place, std::string_view text) {
  return refused(std::move(place),
                 in_quotes(text) +
                     " is not a number, true or false (a missing value is an empty cell, nan, or a word of "
                     "--na)");
}

}  // namespace forestvm::cli
