// See column_names.hpp.
#include "cli/io/column_names.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

#include <forestvm/internal/formatted.hpp>

#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

constexpr std::size_t kShownNames = 5;
constexpr std::size_t kMaxShownBytes = 100;

}  // namespace

FeatureNames::FeatureNames(const RowForm& form) : form_(form), by_name_(form.names.size()) {
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  std::sort(by_name_.begin(), by_name_.end(),
            [&form](std::uint32_t a, std::uint32_t b) { return form.names[a] < form.names[b]; });
}

std::uint32_t FeatureNames::find_exact(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](std::uint32_t feature, std::string_view wanted) { return form_.names[feature] < wanted; });
  return found != by_name_.end() && form_.names[*found] == name ? *found : kNoFeature;
}

std::uint32_t FeatureNames::find(std::string_view name) const {
  if (form_.names.empty()) {
    for (const char* const prefix : {"", "f", "Column_"})
      if (const std::uint32_t feature = numbered(name, prefix, form_.width); feature != kNoFeature)
        return feature;
    return kNoFeature;
  }
  const std::uint32_t found = find_exact(name);
  if (found != kNoFeature || !form_.underlined) return found;
  std::string underlined(name);
  std::replace(underlined.begin(), underlined.end(), ' ', '_');
  return find_exact(underlined);
}

std::optional<std::string_view> FeatureNames::ambiguous() const {
  const auto same = [this](std::uint32_t a, std::uint32_t b) { return form_.names[a] == form_.names[b]; };
  const auto at = std::adjacent_find(by_name_.begin(), by_name_.end(), same);
  return at == by_name_.end() ? std::nullopt : std::optional(form_.names[*at]);
}

std::uint32_t FeatureNames::numbered(std::string_view name, std::string_view prefix, std::size_t width) {
  std::uint32_t number = 0;
  if (!name.starts_with(prefix)) return kNoFeature;
  name.remove_prefix(prefix.size());
  const bool plain = name == "0" || !name.starts_with('0');
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
  return plain && code == std::errc() && end == name.data() + name.size() && number < width ? number
                                                                                            : kNoFeature;
}

void ColumnNames::Naming::add(std::uint32_t feature, std::size_t width, bool extra) {
  if (seen_.empty()) seen_.resize(width);
  if (feature == kNoFeature ? !extra : seen_[feature]) complete_ = false;
  if (feature != kNoFeature && !seen_[feature]) ++named_;
  if (feature != kNoFeature) seen_[feature] = true;
  if (complete_) order_.push_back(feature);
}

void ColumnNames::add(std::string_view name, std::string_view whole) {
  const std::size_t column = count_++;
  const bool keep = form_.keep && (name == *form_.keep || whole == *form_.keep);
  const bool extra = keep || form_.ignores_extra;
  if (keep && kept_) kept_twice_ = true;
  if (keep) kept_ = column;
  numbers_.add(FeatureNames::numbered(name, "", form_.width), form_.width, extra);
  from_one_ = from_one_ && FeatureNames::numbered(name, "", column + 2) == column + 1;
  if (form_.names.empty()) {
    xgboost_.add(FeatureNames::numbered(name, "f", form_.width), form_.width, extra);
    lightgbm_.add(FeatureNames::numbered(name, "Column_", form_.width), form_.width, extra);
  }
  std::uint32_t feature = features_.find(whole);
  if (feature == kNoFeature) feature = features_.find(name);
  if (column == 0) first_is_index_ = feature == kNoFeature && (name.empty() || name == "Unnamed: 0");
  if (form_.names.empty()) return;
  if (feature == kNoFeature && !extra && strange_count_++ < kShownNames)
    strange_.emplace_back(name.substr(0, kMaxShownBytes));
  if (own_.has(feature) && twice_.empty()) twice_ = name;
  own_.add(feature, form_.width, extra);
}

const ColumnNames::Naming* ColumnNames::known() const {
  for (const Naming* const naming : {&own_, &numbers_, &xgboost_, &lightgbm_})
    if (naming->are_all(form_.width) && (form_.names.empty() || naming == &own_)) return naming;
  return nullptr;
}

std::vector<std::uint32_t> ColumnNames::order() const {
  const std::vector<std::uint32_t>& order = known()->order();
  const bool plain = order.size() == form_.width && std::is_sorted(order.begin(), order.end());
  return plain ? std::vector<std::uint32_t>() : order;
}

Result<void> ColumnNames::check_kept() const {
  if (!kept_twice_) return {};
  return refused("header", "the file has two columns named {}, the one to keep", single_quoted(*form_.keep));
}

std::string ColumnNames::index_hint() const {
  if (!first_is_index_ || form_.ignores_extra) return "";
  return "; the first column looks like pandas' index: write the file with to_csv(index=False), or leave it out with "
         "--extra-columns ignore";
}

Error ColumnNames::mismatch() const {
  if (const auto name = features_.ambiguous())
    return refused("header", "the model has two features named {}", single_quoted(*name));
  if (!twice_.empty()) return refused("header", "the file has two columns named {}", single_quoted(twice_));
  std::vector<std::string> lacking;
  std::size_t lacking_count = 0;
  for (std::uint32_t feature = 0; feature < form_.width; ++feature)
    if (!own_.has(feature) && lacking_count++ < kShownNames) lacking.emplace_back(form_.names[feature]);
  std::string message;
  if (lacking_count != 0) message = "lacks features of the model: " + quoted_list(lacking, lacking_count);
  if (strange_count_ != 0)
    message += (message.empty() ? "" : "; ") +
               ("has columns that the model lacks: " + quoted_list(strange_, strange_count_));
  std::string hint = index_hint();
  if (hint.empty() && lacking_count == 0) hint = "; --extra-columns ignore leaves them out";
  return refused("header", message + hint);
}

}  // namespace forestvm::cli
