// See check_columns.hpp.
#include "frontend/check_columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

bool is_hashed(const Model& model, std::uint32_t feature) {
  return std::binary_search(model.hashed_features.begin(), model.hashed_features.end(), feature);
}

bool is_number(const Model& model, std::uint32_t feature) {
  return feature < model.num_features && !is_hashed(model, feature);
}

Result<void> check_lookup(const Model& model, std::size_t number) {
  const Lookup& lookup = model.lookups[number];
  const auto wrong = [&](const std::string& what) { return refused("model", "lookup {}: {}", number, what); };
  for (const std::uint32_t feature : lookup.categories)
    if (!is_hashed(model, feature)) return wrong(formatted("feature {} is not hashed", feature));
  for (const CodeTest& test : lookup.code_tests)
    if (!is_hashed(model, test.feature)) return wrong(formatted("feature {} is not hashed", test.feature));
  for (const ValueTest& test : lookup.value_tests)
    if (!is_number(model, test.feature) || std::isnan(test.border))
      return wrong(formatted("a test of feature {} that is not a comparison of numbers", test.feature));
  std::vector<std::uint64_t> keys = lookup.keys;
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) return wrong("two rows with one key");
  if (lookup.width == 0 || lookup.values.size() / lookup.width != keys.size() + 1 ||
      lookup.values.size() % lookup.width != 0)
    return wrong(formatted("{} values for {} keys", lookup.values.size(), keys.size()));
  return {};
}

Result<void> check_computed(const Model& model, std::size_t number) {
  const ComputedColumn& column = model.computed_columns[number];
  const auto wrong = [&](const std::string& what) {
    return refused("model", "computed column {}: {}", number, what);
  };
  if (static_cast<std::uint32_t>(column.kind) >= kColumnKinds) return wrong("an unknown kind");
  const auto [least, most] = term_counts(column.kind);
  if (column.terms.size() < least || column.terms.size() > most)
    return wrong(formatted("{} terms, which its kind does not have", column.terms.size()));
  const std::uint64_t first = num_columns(model) - model.computed_columns.size();
  for (const ColumnTerm& term : column.terms) {
    const bool computed_before = term.feature >= first && term.feature < first + number;
    if (!is_number(model, term.feature) && !computed_before)
      return wrong(formatted("feature {} is not a number", term.feature));
    if (!std::isfinite(term.first) && column.kind != ColumnKind::Replaced)
      return wrong("a weight that is not finite");
  }
  return {};
}

}  // namespace

Result<void> check_columns(const Model& model) {
  for (std::size_t i = 0; i < model.whole_features.size(); ++i)
    if (model.whole_features[i] >= model.num_features ||
        (i != 0 && model.whole_features[i] <= model.whole_features[i - 1]))
      return refused("model", "its features of whole numbers do not ascend, or do not exist");
  for (std::size_t i = 0; i < model.hashed_features.size(); ++i)
    if (model.hashed_features[i] >= model.num_features ||
        (i != 0 && model.hashed_features[i] <= model.hashed_features[i - 1]))
      return refused("model", "hashed features that do not exist or do not ascend");
  for (std::size_t i = 0; i < model.lookups.size(); ++i) FVM_TRY(check_lookup(model, i));
  for (std::size_t i = 0; i < model.computed_columns.size(); ++i) FVM_TRY(check_computed(model, i));
  if (num_columns(model) > std::numeric_limits<std::uint32_t>::max())
    return refused("model", "too many columns");
  return {};
}

}  // namespace forestvm::frontend
