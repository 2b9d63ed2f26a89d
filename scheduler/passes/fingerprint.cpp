// Model -> its fingerprint: equal for models that predict alike by construction, whatever their names and
// labels.
#include <array>
#include <bit>

#include "scheduler/compilation.hpp"

namespace forestvm::scheduler {
namespace {

/// Calls mix(number) with everything that decides derived columns.
template <class Mix>
void mix_columns(const Model& model, const Mix& mix) {
  const auto mix_float = [&](float value) { mix(std::bit_cast<std::uint32_t>(value)); };
  for (const std::uint32_t feature : model.hashed_features) mix(feature);
  for (const Lookup& lookup : model.lookups) {
    mix(std::uint64_t{lookup.categories.size()} << 32 | lookup.width);
    for (const std::uint32_t feature : lookup.categories) mix(feature);
    for (const ValueTest& test : lookup.value_tests) {
      mix(std::uint64_t{test.feature} << 1 | std::uint64_t{test.nan_above});
      mix_float(test.border);
    }
    for (const CodeTest& test : lookup.code_tests)
      mix(std::uint64_t{test.feature} << 32 | std::bit_cast<std::uint32_t>(test.code));
    for (const std::uint64_t key : lookup.keys) mix(key);
    for (const float value : lookup.values) mix_float(value);
  }
  for (const ComputedColumn& column : model.computed_columns) {
    mix(std::uint64_t{column.terms.size()} << 32 | static_cast<std::uint32_t>(column.kind));
    for (const ColumnTerm& term : column.terms) {
      mix(term.feature);
      mix_float(term.first);
      mix_float(term.second);
    }
  }
}

constexpr std::uint64_t kHighBit = std::uint64_t{1} << 63;

std::uint64_t hash_of(const Model& model) {
  std::uint64_t hash = 14695981039346656037ull;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 1099511628211ull; };
  mix_columns(model, mix);
  const auto mix_double = [&](double value) { mix(std::bit_cast<std::uint64_t>(value)); };
  mix(model.num_features);
  mix(model.num_outputs);
  mix(static_cast<std::uint64_t>(model.class_rule) << 8 | static_cast<std::uint64_t>(model.transform));
  mix(static_cast<std::uint64_t>(model.pair) << 8 | std::uint64_t{model.base_last});
  mix(static_cast<std::uint64_t>(model.row_type) << 3 | static_cast<std::uint64_t>(model.score_type) << 2 |
      std::uint64_t{model.tiny_is_zero} << 1 | std::uint64_t{model.averaged});
  if (model.group_ends != 0) mix(model.group_ends);
  if (!model.whole_features.empty()) mix(kHighBit | model.whole_features.size());
  for (const std::uint32_t feature : model.whole_features) mix(feature);
  for (const double number : {model.slope, model.offset, model.divisor, model.scale}) mix_double(number);
  for (const double base : model.base) mix_double(base);
  for (const Tree& tree : model.trees) {
    mix(tree.output);
    mix_double(static_cast<double>(tree.weight));
    mix(tree.first_leaf);
    for (const Node& node : tree.nodes) {
      mix(static_cast<std::uint64_t>(node.missing) << 8 | static_cast<std::uint64_t>(node.kind) << 1 |
          node.missing_left);
      mix(std::uint64_t{node.feature} << 32 | static_cast<std::uint32_t>(node.left));
      mix(static_cast<std::uint32_t>(node.right));
      mix_double(node.threshold);
      mix_double(node.value);
      if (node.kind == NodeKind::Category || tree.leaf_width > 1 || !tree.linear_leaves.empty())
        mix(node.payload);
    }
    for (const double value : tree.leaf_vectors) mix_double(value);
    for (const LinearLeaf& leaf : tree.linear_leaves) {
      mix_double(leaf.constant);
      mix(leaf.features.size());
      for (const std::uint32_t feature : leaf.features) mix(feature);
      for (const double coefficient : leaf.coefficients) mix_double(coefficient);
    }
    for (const CategorySet& set : tree.category_sets) {
      constexpr std::array<std::uint64_t, kCategoryRules> rules = {0, 2, kHighBit, kHighBit >> 1,
                                                                   kHighBit | kHighBit >> 1};
      mix(rules[static_cast<std::size_t>(set.rule)] | std::uint64_t{set.codes.size()} << 2 |
          std::uint64_t{set.members_left});
      for (const std::uint32_t code : set.codes) mix(code);
    }
  }
  return hash;
}

}  // namespace

Result<void> fingerprint(Compilation& compilation) {
  compilation.fingerprint = hash_of(compilation.model);
  return {};
}

}  // namespace forestvm::scheduler
