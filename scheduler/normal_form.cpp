// See normal_form.hpp. A split is described by its bound, the least float32 that goes right.
#include "scheduler/normal_form.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

namespace forestvm::scheduler {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr auto kTiniest = static_cast<float>(kTiny);  ///< the largest of the tiny numbers
static_assert(static_cast<double>(kTiniest) == kTiny);

float next_above(float x) { return std::nextafter(x, kInfinity); }

/// The least float32 that is not below `x`.
float round_up(double x) {
  // Casting a number beyond float32's range is undefined.
  if (x > static_cast<double>(std::numeric_limits<float>::max())) return kInfinity;
  if (x < static_cast<double>(std::numeric_limits<float>::lowest()))
    return std::isinf(x) ? -kInfinity : std::numeric_limits<float>::lowest();
  const auto nearest = static_cast<float>(x);
  return static_cast<double>(nearest) < x ? next_above(nearest) : nearest;
}

/// The numbers that go right: all from `least` on; none if it is std::nullopt.
struct Bound {
  std::optional<float> least;
};

/// The bound of the comparison alone, which ignores missing and tiny numbers.
Bound bound_of(const Node& node) {
  const float up = round_up(node.threshold);
  const bool equal_goes_left = node.kind == NodeKind::LessEqual && static_cast<double>(up) == node.threshold;
  if (!equal_goes_left) return {up};
  if (up == kInfinity) return {};
  return {next_above(up)};
}

/// Moves the bound so that all tiny numbers go to one side; returns false where no bound does that.
bool send_tiny(Bound& bound, bool left) {
  if (left) {
    if (bound.least && *bound.least < -kTiniest) return false;
    if (bound.least) bound.least = std::max(*bound.least, next_above(kTiniest));
    return true;
  }
  if (!bound.least || *bound.least > next_above(kTiniest)) return false;
  bound.least = std::min(*bound.least, -kTiniest);
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

/// Rewrites a split into the normal form.
void normalize(Node& node, const Bound& bound) {
  if (node.missing == Missing::None) node.missing_left = zero_goes_left(node);
  if (!bound.least) {  // all go left: children change places, and no number is below -inf
    std::swap(node.left, node.right);
    node.missing_left = !node.missing_left;
  }
  node.kind = NodeKind::Less;
  node.missing = Missing::Nan;
  node.threshold = static_cast<double>(bound.least.value_or(-kInfinity));
}

/// Rewrites a split of categories into the normal form; Tree::category_sets is left to the caller.
void normalize(Node& node, const CategorySet& set) {
  if (!set.members_left) return;
  std::swap(node.left, node.right);
  node.missing_left = !node.missing_left;
}

/// Returns true if tiny numbers below zero are a category of the set to the model, but not to the normal form.
bool names_tiny(const Model& model, const CategorySet& set) {
  return model.tiny_is_zero && !set.fractions && !set.codes.empty() && set.codes.front() == 0;
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

}  // namespace

bool is_normal(const Model& model) {
  if (model.score_type != ScalarType::Float32 || model.tiny_is_zero) return false;
  return std::all_of(model.trees.begin(), model.trees.end(), [](const Tree& tree) {
    return std::all_of(tree.nodes.begin(), tree.nodes.end(),
                       [](const Node& node) {
                         return !is_split(node) ||
                                (node.kind == NodeKind::Less && node.missing == Missing::Nan);
                       }) &&
           std::none_of(tree.category_sets.begin(), tree.category_sets.end(),
                        [](const CategorySet& set) { return set.members_left; });
  });
}

Result<std::vector<std::uint32_t>> normalize(Model& model) {
  std::vector<std::uint32_t> zero_missing = zero_missing_of(model);
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    std::vector<Node>& nodes = model.trees[t].nodes;
    std::vector<CategorySet>& sets = model.trees[t].category_sets;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].kind == NodeKind::Category) {
        if (names_tiny(model, sets[nodes[n].payload]))
          return refused("tree " + std::to_string(t) + ", node " + std::to_string(n),
                         "tiny numbers below zero are category 0 here, others none: not lowered yet");
        normalize(nodes[n], sets[nodes[n].payload]);
      }
      if (!is_split(nodes[n])) continue;
      Bound bound = bound_of(nodes[n]);
      const bool zeros_are_nan =
          std::binary_search(zero_missing.begin(), zero_missing.end(), nodes[n].feature);
      if (!zeros_are_nan && !whole_bound(model, nodes[n], bound))
        return refused("tree " + std::to_string(t) + ", node " + std::to_string(n),
                       "zero is missing here, between numbers that go the other way, but a number in other "
                       "splits of feature " +
                           std::to_string(nodes[n].feature) + ": not lowered yet");
      normalize(nodes[n], bound);
    }
    for (CategorySet& set : sets) set.members_left = false;
  }
  model.tiny_is_zero = false;
  return zero_missing;
}

}  // namespace forestvm::scheduler
