// See column_names.hpp.
#include "cli/io/column_names.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

constexpr std::size_t kShownNames = 5;
constexpr std::size_t kLongestShown = 100;

}  // namespace

void ColumnNames::Places::add(std::uint32_t place, std::size_t width) {
  if (seen_.empty()) seen_.resize(width);
  if (seen_[place]) return add_none();
  seen_[place] = true;
  if (complete_) order_.push_back(place);
}

ColumnNames::ColumnNames(const RowForm& form) : form_(form), by_name_(form.names.size()) {
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  std::sort(by_name_.begin(), by_name_.end(),
            [&form](std::uint32_t a, std::uint32_t b) { return form.names[a] < form.names[b]; });
}

void ColumnNames::add(std::string_view name) {
  add_default(name, "", form_.width, numbers_);
  if (!form_.names.empty()) return add_own(name);
  add_default(name, "f", form_.width, xgboost_);
  add_default(name, "Column_", form_.width, lightgbm_);
}

void ColumnNames::add_default(std::string_view name, std::string_view prefix, std::size_t width,
                              Places& places) {
  std::uint32_t number = 0;
  if (!name.starts_with(prefix)) return places.add_none();
  name.remove_prefix(prefix.size());
  const bool plain = name == "0" || !name.starts_with('0');
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (!plain || code != std::errc() || end != name.data() + name.size() || number >= width)
    return places.add_none();
  places.add(number, width);
}

std::vector<std::uint32_t>::const_iterator ColumnNames::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](std::uint32_t feature, std::string_view wanted) { return form_.names[feature] < wanted; });
  return found != by_name_.end() && form_.names[*found] == name ? found : by_name_.end();
}

void ColumnNames::add_own(std::string_view name) {
  auto found = find(name);
  if (found == by_name_.end() && form_.underlined) {
    std::string underlined(name);
    std::replace(underlined.begin(), underlined.end(), ' ', '_');
    found = find(underlined);
  }
  if (found == by_name_.end()) {
    if (strange_count_++ < kShownNames) strange_.emplace_back(name.substr(0, kLongestShown));
    return own_.add_none();
  }
  if (own_.has(*found) && twice_.empty()) twice_ = name;
  own_.add(*found, form_.width);
}

const ColumnNames::Places* ColumnNames::known() const {
  for (const Places* const places : {&own_, &numbers_, &xgboost_, &lightgbm_})
    if (places->are_all(form_.width) && (form_.names.empty() || places == &own_)) return places;
  return nullptr;
}

std::vector<std::uint32_t> ColumnNames::order() const {
  const std::vector<std::uint32_t>& order = known()->order();
  return std::is_sorted(order.begin(), order.end()) ? std::vector<std::uint32_t>() : order;
}

Error ColumnNames::mismatch() const {
  const auto same = [this](std::uint32_t a, std::uint32_t b) { return form_.names[a] == form_.names[b]; };
  if (const auto at = std::adjacent_find(by_name_.begin(), by_name_.end(), same); at != by_name_.end())
    return refused("header", "the model has two features named " + in_quotes(form_.names[*at]));
  if (!twice_.empty()) return refused("header", "the file has two columns named " + in_quotes(twice_));
  std::vector<std::string> lacking;
  std::size_t lacking_count = 0;
  for (std::uint32_t feature = 0; feature < form_.width; ++feature)
    if (!own_.has(feature) && lacking_count++ < kShownNames) lacking.emplace_back(form_.names[feature]);
  std::string message;
  if (lacking_count != 0) message = "lacks features of the model: " + quoted_list(lacking, lacking_count);
  if (strange_count_ != 0)
    message += (message.empty() ? "" : "; ") +
               ("has columns that the model lacks: " + quoted_list(strange_, strange_count_));
  return refused("header", message);
}

}  // namespace forestvm::cli
