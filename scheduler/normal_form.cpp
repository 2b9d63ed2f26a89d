// See normal_form.hpp. A split is described by its bound, the least float64 number that goes right.
#include "scheduler/normal_form.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <forestvm/core/category_rules.hpp>
#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double next_above(double x) { return std::nextafter(x, kInfinity); }

/// Returns the least float32 that is not below `x`.
float round_up(double x) { return neighbours(x).up; }

/// The numbers that go right: all from `least` on; none if `least` is std::nullopt.
struct Bound {
  std::optional<double> least;
};

/// Returns the bound of the comparison alone, which ignores missing and tiny numbers.
Bound bound_of(const Node& node) {
  if (node.kind != NodeKind::LessEqual) return {node.threshold};
  if (node.threshold == kInfinity) return {};
  return {next_above(node.threshold)};
}

/// Moves the bound so that all tiny numbers go to one side; returns false where no bound does that.
bool send_tiny(Bound& bound, bool left) {
  if (left) {
    if (bound.least && *bound.least < -kTiny) return false;
    if (bound.least) bound.least = std::max(*bound.least, next_above(kTiny));
    return true;
  }
  if (!bound.least || *bound.least > next_above(kTiny)) return false;
  bound.least = std::min(*bound.least, -kTiny);
  return true;
}

bool zero_goes_left(const Node& node) {
  return node.kind == NodeKind::LessEqual ? 0 <= node.threshold : 0 < node.threshold;
}

/// Finds the bound of a split, tiny numbers included; returns false where no single bound divides them.
bool whole_bound(const Model& model, const Node& node, Bound& bound) {
  bound = bound_of(node);
  if (node.missing == Missing::Zero) return send_tiny(bound, node.missing_left);
  return !model.tiny_is_zero || send_tiny(bound, zero_goes_left(node));
}

/// Rewrites a split into the normal form, except that its threshold becomes the bound, which is not rounded to
/// float32 yet.
void normalize_split(Node& node, const Bound& bound) {
  if (node.missing == Missing::None) node.missing_left = zero_goes_left(node);
  if (!bound.least) {  // all go left: the children are swapped, and no number is below -inf
    std::swap(node.left, node.right);
    node.missing_left = !node.missing_left;
  }
  node.kind = NodeKind::Less;
  node.missing = Missing::Nan;
  node.threshold = bound.least.value_or(-kInfinity);
}

/// Rewrites a split of categories into the normal form; Tree::category_sets is left to the caller.
void normalize_split(Node& node, const CategorySet& set) {
  if (!set.members_left) return;
  std::swap(node.left, node.right);
  node.missing_left = !node.missing_left;
}

/// Returns true if tiny numbers below zero are a category of the set to the model, but not to the normal form.
bool names_tiny(const Model& model, const CategorySet& set) {
  return model.tiny_is_zero && set.rule != CategoryRule::AboveMinusOne && !set.codes.empty() &&
         set.codes.front() == 0;
}

bool is_split(const Node& node) { return node.kind == NodeKind::Less || node.kind == NodeKind::LessEqual; }

/// Returns the features whose tiny numbers the program makes NaN, ascending. Some split of such a feature has
/// a bound only if zeros are NaN, and none takes zero for a number.
std::vector<std::uint32_t> zero_missing_of(const Model& model) {
  std::set<std::uint32_t> features;
  Bound ignored;
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes)
      if (is_split(node) && !whole_bound(model, node, ignored)) features.insert(node.feature);
  if (features.empty()) return {};
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes)
      if (node.kind == NodeKind::Category || (is_split(node) && node.missing != Missing::Zero))
        features.erase(node.feature);
  return {features.begin(), features.end()};
}

/// The comparisons of a feature.
struct Comparisons {
  std::vector<double> bounds;
  WideCategories categories = WideCategories::None;
  bool mixed = false;      ///< True if sets of the feature have different rules.
  bool others_go = false;  ///< True if a split sends numbers without a code another way than missing values.
  bool whole = false;      ///< True if it is one of Model::whole_features.
};

WideCategories wide_categories(CategoryRule rule) {
  switch (rule) {
    case CategoryRule::WholePart:
    case CategoryRule::AboveMinusOne:
      return WideCategories::Parts;
    case CategoryRule::Whole:
      return WideCategories::Whole;
    case CategoryRule::Byte:
      return WideCategories::Byte;
    case CategoryRule::SignedByte:
      return WideCategories::SignedByte;
  }
  return WideCategories::None;
}

std::map<std::uint32_t, Comparisons> comparisons_of(const Model& model) {
  std::map<std::uint32_t, Comparisons> features;
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes) {
      if (node.kind == NodeKind::Category) {
        Comparisons& comparisons = features[node.feature];
        const WideCategories categories = wide_categories(tree.category_sets[node.payload].rule);
        comparisons.mixed |=
            comparisons.categories != WideCategories::None && comparisons.categories != categories;
        comparisons.categories = std::max(comparisons.categories, categories);
        comparisons.others_go |= !node.missing_left;
      }
      // Skips -inf, which separates nothing: all numbers are at or above it.
      if (is_split(node) && node.threshold != -kInfinity)
        features[node.feature].bounds.push_back(node.threshold + 0.0);  // adding zero makes one zero of both
    }
  for (auto& [feature, comparisons] : features) {
    comparisons.whole = std::binary_search(model.whole_features.begin(), model.whole_features.end(), feature);
    std::vector<double>& bounds = comparisons.bounds;
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  }
  return features;
}

/// Returns whether some comparisons with different bounds would be the same in float32.
bool need_ranks(const std::vector<double>& bounds) {
  return std::adjacent_find(bounds.begin(), bounds.end(),
                            [](double a, double b) { return round_up(a) == round_up(b); }) != bounds.end();
}

/// Returns whether rounding for the comparisons could change the category of a number.
bool move_categories(const std::vector<double>& bounds) {
  return std::any_of(bounds.begin(), bounds.end(), [](double bound) {
    const float up = round_up(bound);
    if (bound > -1 && bound < 0) return up <= -0x1.fffffep-1f;
    return bound > 0 && static_cast<double>(up) != bound && up <= static_cast<float>(kMaxCategories) &&
           std::trunc(up) == up;
  });
}

/// Returns the rule that a feature's values need. Infinity is no category, and unlike NaN it is not missing.
WideCategories rule_of(const Comparisons& comparisons) {
  const WideCategories categories = comparisons.categories;
  if (comparisons.whole && categories <= WideCategories::Whole) return WideCategories::Integers;
  const bool apart = categories == WideCategories::Whole && comparisons.others_go;
  return apart && comparisons.bounds.empty() ? WideCategories::Integers : categories;
}

/// Adds the rules for a feature's values, if it needs some.
Result<void> add_rules(std::uint32_t feature, const Comparisons& comparisons, RowRules& rules) {
  const std::vector<double>& bounds = comparisons.bounds;
  WideFeature wide{};
  wide.feature = feature;
  wide.first_bound = static_cast<std::uint32_t>(rules.wide_bounds.size());
  wide.ranked = need_ranks(bounds) ? 1 : 0;
  const WideCategories rule = rule_of(comparisons);
  wide.categories = static_cast<std::uint8_t>(rule);
  // Numbers without a code become NaN, or numbers become bytes, for all splits of the feature.
  const bool changed = comparisons.categories >= WideCategories::Whole;
  const bool some_missing = rule == WideCategories::Whole || rule == WideCategories::Byte;
  if (changed &&
      (comparisons.mixed || comparisons.whole || (some_missing && comparisons.others_go) || !bounds.empty()))
    return refused(
        formatted("feature {}", feature),
        "splits of whole categories or of bytes beside others, or that send other numbers another way "
        "than missing values: not lowered yet");
  if (comparisons.categories != WideCategories::None && (wide.ranked != 0 || move_categories(bounds)))
    return refused(
        formatted("feature {}", feature),
        "splits of categories and of numbers, with thresholds that only float64 tells apart or that "
        "lie beside a category: not lowered yet");
  if (wide.ranked != 0 && bounds.size() >= kMaxRankedBounds)
    return refused(formatted("feature {}", feature), "has {} thresholds that only float64 tells apart",
                   bounds.size());
  std::copy_if(bounds.begin(), bounds.end(), std::back_inserter(rules.wide_bounds), [&](double bound) {
    return wide.ranked != 0 || static_cast<double>(round_up(bound)) != bound;
  });
  wide.bound_count = static_cast<std::uint32_t>(rules.wide_bounds.size()) - wide.first_bound;
  if (wide.bound_count != 0 || wide.categories != 0) rules.wide_features.push_back(wide);
  return {};
}

/// Rounds thresholds, which are bounds, up to float32. The thresholds of a ranked feature become the numbers of
/// bounds at or below them.
void round_thresholds(Model& model, const RowRules& rules) {
  std::map<std::uint32_t, std::span<const double>> ranked;
  for (const WideFeature& wide : rules.wide_features)
    if (wide.ranked != 0)
      ranked[wide.feature] = std::span(rules.wide_bounds).subspan(wide.first_bound, wide.bound_count);
  for (Tree& tree : model.trees)
    for (Node& node : tree.nodes) {
      if (!is_split(node) || node.threshold == -kInfinity) continue;
      const auto ranks = ranked.find(node.feature);
      node.threshold = ranks == ranked.end()
                           ? static_cast<double>(round_up(node.threshold))
                           : static_cast<double>(std::upper_bound(ranks->second.begin(), ranks->second.end(),
                                                                  node.threshold) -
                                                 ranks->second.begin());
    }
}

/// Returns whether numbers of rows must be changed before the set's codes are looked for.
bool changes_numbers(const CategorySet& set) { return wide_categories(set.rule) >= WideCategories::Whole; }

/// Refuses sets that change numbers in models that compare in float32, which have no rules for categories.
Result<void> check_rules(const Model& model) {
  for (std::size_t t = 0; model.row_type == ScalarType::Float32 && t < model.trees.size(); ++t)
    for (const CategorySet& set : model.trees[t].category_sets)
      if (changes_numbers(set))
        return refused(formatted("tree {}", t), "whole categories or bytes of float32 rows: not lowered yet");
  return {};
}

}  // namespace

bool is_normal(const Model& model) {
  if (model.row_type != ScalarType::Float32 || model.tiny_is_zero || !model.whole_features.empty())
    return false;
  return std::all_of(model.trees.begin(), model.trees.end(), [](const Tree& tree) {
    return tree.leaf_width == 1 &&
           std::all_of(tree.nodes.begin(), tree.nodes.end(),
                       [](const Node& node) {
                         return !is_split(node) ||
                                (node.kind == NodeKind::Less && node.missing == Missing::Nan);
                       }) &&
           std::none_of(tree.category_sets.begin(), tree.category_sets.end(),
                        [](const CategorySet& set) { return set.members_left || changes_numbers(set); });
  });
}

bool same_test(const Node& a, const Node& b) {
  return a.kind == b.kind && a.feature == b.feature && a.threshold == b.threshold && a.payload == b.payload &&
         a.missing_left == b.missing_left && a.missing == b.missing;
}

Result<RowRules> normalize(Model& model) {
  RowRules rules{zero_missing_of(model), {}, {}};
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    std::vector<Node>& nodes = model.trees[t].nodes;
    std::vector<CategorySet>& sets = model.trees[t].category_sets;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].kind == NodeKind::Category) {
        if (names_tiny(model, sets[nodes[n].payload]))
          return refused(formatted("tree {}, node {}", t, n),
                         "tiny numbers below zero are category 0 here, others none: not lowered yet");
        normalize_split(nodes[n], sets[nodes[n].payload]);
      }
      if (!is_split(nodes[n])) continue;
      Bound bound = bound_of(nodes[n]);
      const bool zeros_are_nan =
          std::binary_search(rules.zero_missing.begin(), rules.zero_missing.end(), nodes[n].feature);
      if (!zeros_are_nan && !whole_bound(model, nodes[n], bound))
        return refused(
            formatted("tree {}, node {}", t, n),
            "zero is missing here, between numbers that go the other way, but a number in other splits of feature {}: not lowered yet",
            nodes[n].feature);
      normalize_split(nodes[n], bound);
    }
    for (CategorySet& set : sets) set.members_left = false;
  }
  model.tiny_is_zero = false;
  FVM_TRY(check_rules(model));
  std::map<std::uint32_t, Comparisons> features = comparisons_of(model);
  for (auto& [feature, comparisons] : features) {
    if (model.row_type == ScalarType::Float32) {
      // Float32 numbers need no rules for thresholds, only for being whole.
      if (!comparisons.whole) continue;
      comparisons.bounds.clear();
    }
    FVM_TRY(add_rules(feature, comparisons, rules));
  }
  model.whole_features.clear();
  round_thresholds(model, rules);
  return rules;
}

}  // namespace forestvm::scheduler
