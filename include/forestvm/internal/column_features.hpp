// The columns that a model's splits test -> the features to which what the splits do is attributed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include <forestvm/model.hpp>

namespace forestvm {

/// Stands for the features of a column that is computed from several.
inline constexpr std::uint32_t kSeveralFeatures = UINT32_MAX;

/// Returns for each column of a model, features first, the one feature that it is computed from, or kSeveralFeatures.
inline std::vector<std::uint32_t> features_of_columns(const Model& model) {
  std::vector<std::uint32_t> features;
  const auto add = [&](const std::set<std::uint32_t>& sources, std::size_t columns) {
    features.insert(features.end(), columns, sources.size() == 1 ? *sources.begin() : kSeveralFeatures);
  };
  for (std::uint32_t f = 0; f < model.num_features; ++f) features.push_back(f);
  for (const Lookup& lookup : model.lookups) {
    std::set<std::uint32_t> sources(lookup.categories.begin(), lookup.categories.end());
    for (const ValueTest& test : lookup.value_tests) sources.insert(test.feature);
    for (const CodeTest& test : lookup.code_tests) sources.insert(test.feature);
    add(sources, lookup.width);
  }
  for (const ComputedColumn& column : model.computed_columns) {
    std::set<std::uint32_t> sources;
    for (const ColumnTerm& term : column.terms) sources.insert(features[term.feature]);
    add(sources, 1);
  }
  return features;
}

}  // namespace forestvm
