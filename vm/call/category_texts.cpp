// See forestvm/internal/category_texts.hpp.
#include <forestvm/internal/category_texts.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/city_hash.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "vm/call/number_text.hpp"
#include "vm/call/read_column.hpp"

namespace forestvm {
namespace {

/// Returns the number that the whole text is; nothing if it is no number.
std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Returns the error for a value that is not one of a feature's `count` categories.
[[gnu::cold]] Failure not_among(const std::string& value, std::size_t count) {
  return refused(formatted(
      "{} is not one of the model's {} categories: its trainer refuses others, or takes them for one of these",
      value, count));
}

/// Checks that each number of a dictionary is a float64. Errors name the first that is not.
Result<void> check_exact(const Column& dictionary, std::size_t count) {
  if (dictionary.form != ColumnForm::Numbers) return {};
  const auto at = [&](std::size_t i) {
    return static_cast<const std::byte*>(dictionary.values) +
           (dictionary.offset + i) * bytes_of(dictionary.type);
  };
  for (std::size_t i = 0; i < count; ++i) {
    i += first_inexact(dictionary.type, at(i), count - i);
    if (i < count && host::present(dictionary, i, 1) != 0)
      return fail(ErrorCode::Usage, formatted("value {}", i),
                  formatted("{} is no float64 number", inexact_text(dictionary.type, at(i))));
  }
  return {};
}

}  // namespace

CategoryTexts::CategoryTexts(const Program& program)
    : named_(program.category_names().size()), hashed_(program.hashed_features()) {
  auto at = named_.begin();
  for (const CategoryNames& record : program.category_names()) {
    Named& named = *at++;
    named.feature = record.feature;
    if (record.refuses_unseen == 0) named.unseen = record.unseen;
    const std::vector<std::string_view> names = program.category_names(record.feature);
    named.codes.reserve(names.size());
    for (std::uint32_t code = 0; code < names.size(); ++code) {
      named.codes.emplace(names[code], code);
      if (const auto number = number_in(names[code])) {
        named.numbers.emplace(*number, code);
        named.has_ambiguous_numbers = named.has_ambiguous_numbers || *number != code;
      }
    }
  }
}

Failure CategoryTexts::wants_number(std::string_view text) {
  return refused(formatted(
      "it holds the text {}, and the model expects numbers here: it has no names of categories for this feature",
      in_quotes(text, 60)));
}

Result<void> CategoryTexts::check_texts(std::uint32_t feature, const Column& column,
                                        std::size_t count) const {
  if (takes(feature)) return {};
  for (std::size_t i = 0; i < count; ++i) {
    if (host::present(column, i, 1) == 0) continue;
    FVM_ASSIGN(const std::string_view text, host::text_at(column, i));
    return wants_number(text);
  }
  return refused("it holds texts, and the model expects numbers here");
}

bool CategoryTexts::hashes(std::uint32_t feature) const {
  return std::binary_search(hashed_.begin(), hashed_.end(), feature);
}

bool CategoryTexts::has_ambiguous_numbers(std::uint32_t feature) const {
  const Named* const mine = named(feature);
  return mine != nullptr && mine->has_ambiguous_numbers;
}

const CategoryTexts::Named* CategoryTexts::named(std::uint32_t feature) const {
  const auto at = std::lower_bound(named_.begin(), named_.end(), feature,
                                   [](const Named& a, std::uint32_t b) { return a.feature < b; });
  return at != named_.end() && at->feature == feature ? &*at : nullptr;
}

Result<double> CategoryTexts::number_of(std::uint32_t feature, std::string_view text) const {
  const Named* const mine = named(feature);
  if (mine == nullptr) return static_cast<double>(category_code(text));
  if (const auto at = mine->codes.find(text); at != mine->codes.end()) return static_cast<double>(at->second);
  if (mine->unseen) return *mine->unseen;
  return not_among(in_quotes(text, 60), mine->codes.size());
}

Result<double> CategoryTexts::number_of(std::uint32_t feature, double number) const {
  if (hashes(feature)) {
    if (std::abs(number) <= kMaxCategoryNumber && number == std::trunc(number))
      return static_cast<double>(category_code(std::to_string(static_cast<std::int64_t>(number))));
    return refused(formatted("{} is not a category: whole numbers up to 2^53 stand by their decimal text",
                             number_text(number)));
  }
  const Named* const mine = named(feature);
  if (mine == nullptr || std::isnan(number)) return number;
  if (const auto at = mine->numbers.find(number); at != mine->numbers.end())
    return static_cast<double>(at->second);
  if (mine->unseen) return *mine->unseen;
  return not_among(number_text(number), mine->codes.size());
}

Result<bool> CategoryTexts::numbers_of(std::uint32_t feature, const Column& dictionary, std::size_t count,
                                       double* out) const {
  bool refuses = false;
  FVM_TRY(check_exact(dictionary, count));
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = std::numeric_limits<double>::quiet_NaN();
    if (host::present(dictionary, i, 1) == 0) continue;
    const auto number = [&]() -> Result<double> {
      if (!is_text(dictionary)) return number_of(feature, host::number_at(dictionary, i));
      FVM_ASSIGN(const std::string_view text, host::text_at(dictionary, i));
      return number_of(feature, text);
    }();
    if (!number && number.error().code != ErrorCode::Refused) return number.error();
    refuses = refuses || !number;
    out[i] = number ? *number : std::bit_cast<double>(kRefusedCategory);
  }
  return refuses;
}

}  // namespace forestvm
