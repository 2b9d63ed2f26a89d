// See pandas_categories.hpp.
#include "frontend/pandas_categories.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "frontend/category_names.hpp"

namespace forestvm::frontend {
namespace {

using FeatureList = std::vector<std::uint32_t>;

/// Returns the features in a list such as "1,2,5"; nothing if it is another kind of list.
std::optional<FeatureList> listed_features(std::string_view text, std::uint32_t num_features) {
  FeatureList features;
  while (!text.empty()) {
    std::uint32_t feature = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), feature);
    if (code != std::errc() || feature >= num_features) return {};
    features.push_back(feature);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.empty() && !text.starts_with(',')) return {};
    text.remove_prefix(std::min<std::size_t>(text.size(), 1));
  }
  std::sort(features.begin(), features.end());
  features.erase(std::unique(features.begin(), features.end()), features.end());
  return features;
}

/// Returns the categorical features: those of the training parameter, otherwise those whose values the file lists,
/// such as "0:2:1" instead of "[0:2]" or "none".
FeatureList categorical_features(const LightgbmHeader& header, std::uint32_t num_features) {
  if (!header.categorical_feature.text.empty())
    return listed_features(header.categorical_feature.text, num_features).value_or(FeatureList{});
  FeatureList features;
  std::string_view text = header.feature_infos.text;
  for (std::uint32_t i = 0; i < num_features; ++i) {
    const std::string_view info = take_word(text);
    if (!info.starts_with('[') && info != "none") features.push_back(i);
  }
  return features;
}

}  // namespace

bool PandasCategories::on_null() {
  done_ = depth_ == 0;
  return done_ || wrong("null");
}

bool PandasCategories::on_real(double, std::string_view text) {
  std::string name(text);  // the JSON library may have written the locale's decimal point
  for (char& c : name)
    if ((c < '0' || c > '9') && c != '-' && c != '+' && c != 'e' && c != 'E') c = '.';
  return add(std::move(name));
}

bool PandasCategories::on_array_begin() {
  if (depth_ == 2) return wrong("an array");
  // comes before ++depth_, because path() looks for a list at depth 2
  if (depth_ == 1) lists_.emplace_back();
  ++depth_;
  return true;
}

bool PandasCategories::on_array_end() {
  done_ = --depth_ == 0;
  return true;
}

std::string PandasCategories::path() const {
  std::string out = "pandas_categorical";
  if (depth_ > 0 && !lists_.empty()) out += formatted("[{}]", lists_.size() - 1);
  if (depth_ == 2 && !lists_.back().empty()) out += formatted("[{}]", lists_.back().size() - 1);
  return out;
}

bool PandasCategories::add(std::string name) {
  if (depth_ != 2) return wrong("no array");
  if (lists_.back().size() == kMaxCategories)
    return wrong(formatted("more than {} categories", kMaxCategories));
  return append_name(lists_.back(), std::move(name)) || wrong("a name twice");
}

bool PandasCategories::wrong(const std::string& found) {
  error_ =
      refused(path(), "expected null, or a list of lists of texts, numbers and booleans; found {}", found);
  return false;
}

Result<void> add_pandas_categories(const LightgbmHeader& header, const LoadLimits& limits, Model& model) {
  const LightgbmEntry& entry = header.pandas_categorical;
  std::vector<std::vector<std::string>> lists = header.pandas_lists;
  if (entry.given() && entry.line != LightgbmEntry::kNoLine) {
    PandasCategories read;
    const Result<void> done =
        read_events(std::as_bytes(std::span(entry.text)), Syntax::Json, limits.max_depth, read);
    if (!done)
      return Error{done.error().code, formatted("{}: {}", location_of(entry), done.error().where),
                   done.error().message};
    lists = std::move(read.lists());
  }
  if (lists.empty()) return {};
  const FeatureList features = categorical_features(header, model.num_features);
  if (features.size() != lists.size()) return {};
  for (std::size_t i = 0; i < lists.size(); ++i)
    FVM_TRY(add_category_names(features[i], std::move(lists[i]), std::numeric_limits<double>::quiet_NaN(),
                               formatted("{}: pandas_categorical[{}]", location_of(entry), i), model));
  return {};
}

}  // namespace forestvm::frontend
