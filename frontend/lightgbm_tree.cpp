// See lightgbm_tree.hpp.
#include "frontend/lightgbm_tree.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

// The bits of decision_type.
constexpr std::int64_t kCategoryBit = 1;
constexpr std::int64_t kDefaultLeftBit = 2;
constexpr int kMissingShift = 2;
constexpr std::int64_t kMaxDecisionType = 2 << kMissingShift | kDefaultLeftBit | kCategoryBit;

constexpr std::int64_t kMaxLeaves = std::int64_t{1} << 30;  // a node's index fits 31 bits then

Missing missing_of(std::int64_t decision_type) {
  switch (decision_type >> kMissingShift) {
    case 0:
      return Missing::None;
    case 1:
      return Missing::Zero;
    default:
      return Missing::Nan;
  }
}

Error node_error(const LightgbmTree& entries, const LightgbmEntry& entry, std::size_t node,
                 std::string_view message) {
  return refused(formatted("{}, node {}", location_of(entry, &entries), node), message);
}

/// Sets the splits' children to indices in Tree::nodes.
Result<void> add_children(const LightgbmTree& entries, const LightgbmEntry& entry, std::size_t leaves,
                          std::int32_t Node::*side, Tree& tree) {
  const auto splits = static_cast<std::int64_t>(leaves) - 1;
  FVM_ASSIGN(const std::vector<std::int64_t> children, integers_of(entry, leaves - 1, &entries));
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::int64_t child = children[i];
    if (child >= splits || child < -splits - 1)
      return node_error(entries, entry, i,
                        formatted("child {} does not exist: the tree has {} splits and leaves to -{}", child,
                                  splits, leaves));
    tree.nodes[i].*side = static_cast<std::int32_t>(child >= 0 ? child : splits + ~child);
  }
  return {};
}

/// Sets the covers of the nodes from `first` on to their counts of training rows. Trees may lack them.
Result<void> add_covers(const LightgbmTree& entries, const LightgbmEntry& entry, std::size_t count,
                        std::size_t first, Tree& tree) {
  if (entry.text.empty()) return {};
  FVM_ASSIGN(const std::vector<std::int64_t> rows, integers_of(entry, count, &entries));
  for (std::size_t i = 0; i < count; ++i) {
    if (rows[i] < 0) return node_error(entries, entry, first + i, "a negative count of training rows");
    tree.nodes[first + i].cover = static_cast<float>(rows[i]);
  }
  return {};
}

/// Sets the gains of the splits. Trees may lack them.
Result<void> add_gains(const LightgbmTree& entries, std::size_t splits, Tree& tree) {
  if (entries.split_gain.text.empty()) return {};
  FVM_ASSIGN(const std::vector<double> gains, reals_of(entries.split_gain, splits, &entries));
  tree.gains.resize(tree.nodes.size());
  std::transform(gains.begin(), gains.end(), tree.gains.begin(),
                 [](double gain) { return static_cast<float>(gain); });
  return {};
}

Result<void> add_decisions(const LightgbmTree& entries, std::size_t splits, Tree& tree) {
  FVM_ASSIGN(const std::vector<std::int64_t> types, integers_of(entries.decision_type, splits, &entries));
  for (std::size_t i = 0; i < splits; ++i) {
    if (types[i] < 0 || types[i] > kMaxDecisionType)
      return node_error(entries, entries.decision_type, i, formatted("unknown decision type {}", types[i]));
    Node& node = tree.nodes[i];
    node.kind = (types[i] & kCategoryBit) != 0 ? NodeKind::Category : NodeKind::LessEqual;
    if (node.kind == NodeKind::Category) continue;  // NaN is in no set, whatever decision_type says
    node.missing_left = (types[i] & kDefaultLeftBit) != 0;
    node.missing = missing_of(types[i]);
  }
  return {};
}

/// Reads a set from its words, with a bit for each category that goes left.
Result<CategorySet> set_of(const LightgbmTree& entries, std::span<const std::int64_t> words,
                           std::size_t number) {
  CategorySet set;
  set.members_left = true;
  set.rule = CategoryRule::AboveMinusOne;
  for (std::size_t w = 0; w < words.size(); ++w) {
    const auto wrong = [&](const std::string& what) {
      return refused(location_of(entries.cat_threshold, &entries), "cat_threshold: set {}: {}", number, what);
    };
    if (words[w] < 0 || words[w] > std::numeric_limits<std::uint32_t>::max())
      return wrong(formatted("{} is not a word of 32 bits", words[w]));
    for (auto bits = static_cast<std::uint32_t>(words[w]); bits != 0; bits &= bits - 1) {
      const std::size_t code = 32 * w + static_cast<std::size_t>(std::countr_zero(bits));
      if (code >= kMaxCategories)
        return wrong(formatted("category {} is over the limit of {}", code, kMaxCategories - 1));
      set.codes.push_back(static_cast<std::uint32_t>(code));
    }
  }
  return set;
}

/// Reads the sets of categories. The threshold of a categorical split is the number of its set.
Result<void> add_sets(const LightgbmTree& entries, std::size_t count, Tree& tree) {
  if (count == 0) return {};
  if (!entries.cat_boundaries.given() || !entries.cat_threshold.given())
    return refused(location_of(entries.num_cat, &entries), "cat_boundaries or cat_threshold is missing");
  FVM_ASSIGN(const std::vector<std::int64_t> bounds,
             integers_of(entries.cat_boundaries, count + 1, &entries));
  const auto wrong = [&](const std::string& what) {
    return refused(location_of(entries.cat_boundaries, &entries), "cat_boundaries: {}", what);
  };
  if (bounds.front() != 0) return wrong(formatted("the first is {}", bounds.front()));
  for (std::size_t i = 0; i < count; ++i)
    if (bounds[i + 1] < bounds[i]) return wrong(formatted("{} comes after {}", bounds[i + 1], bounds[i]));
  FVM_ASSIGN(const std::vector<std::int64_t> words,
             integers_of(entries.cat_threshold, static_cast<std::size_t>(bounds.back()), &entries));
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::size_t>(bounds[i]), end = static_cast<std::size_t>(bounds[i + 1]);
    FVM_ASSIGN(CategorySet set, set_of(entries, std::span(words).subspan(begin, end - begin), i));
    tree.category_sets.push_back(std::move(set));
  }
  return {};
}

/// Sets the threshold of a split, or the set of a categorical one.
Result<void> set_threshold(const LightgbmTree& entries, double threshold, std::size_t split, Tree& tree) {
  Node& node = tree.nodes[split];
  if (node.kind != NodeKind::Category) {
    node.threshold = threshold;
    return {};
  }
  const bool exists = threshold >= 0 && threshold < static_cast<double>(tree.category_sets.size());
  if (!exists || std::trunc(threshold) != threshold)
    return node_error(entries, entries.threshold, split,
                      formatted("there is no set of categories {}: the tree has {}",
                                std::to_string(threshold), tree.category_sets.size()));
  node.payload = static_cast<std::uint32_t>(threshold);
  return {};
}

Result<void> add_splits(const LightgbmTree& entries, std::size_t leaves, Tree& tree) {
  const std::size_t splits = leaves - 1;
  FVM_ASSIGN(const std::vector<std::int64_t> features, integers_of(entries.split_feature, splits, &entries));
  FVM_ASSIGN(const std::vector<double> thresholds, reals_of(entries.threshold, splits, &entries));
  FVM_TRY(add_decisions(entries, splits, tree));
  FVM_ASSIGN(const std::int64_t sets, number_of(entries.num_cat, 0, kMaxLeaves, &entries));
  const auto categorical = std::count_if(tree.nodes.begin(), tree.nodes.end(),
                                         [](const Node& node) { return node.kind == NodeKind::Category; });
  if (sets != categorical)
    return refused(location_of(entries.num_cat, &entries),
                   "num_cat: {} categorical splits, but the tree has {}", sets, categorical);
  FVM_TRY(add_sets(entries, static_cast<std::size_t>(sets), tree));
  for (std::size_t i = 0; i < splits; ++i) {
    if (features[i] < 0 || features[i] > std::numeric_limits<std::int32_t>::max())
      return node_error(entries, entries.split_feature, i,
                        formatted("feature {} does not exist", features[i]));
    FVM_TRY(set_threshold(entries, thresholds[i], i, tree));
    tree.nodes[i].feature = static_cast<std::uint32_t>(features[i]);
  }
  FVM_TRY(add_children(entries, entries.left_child, leaves, &Node::left, tree));
  return add_children(entries, entries.right_child, leaves, &Node::right, tree);
}

/// Reads the linear functions of the leaves: a constant, and num_features entries of leaf_features and leaf_coeff.
Result<void> add_linear_leaves(const LightgbmTree& entries, std::size_t leaves, Tree& tree) {
  for (const LightgbmEntry* const entry :
       {&entries.leaf_const, &entries.num_features, &entries.leaf_features, &entries.leaf_coeff})
    if (!entry->given())
      return refused(location_of(entries.is_linear, &entries),
                     "leaf_const, num_features, leaf_features or leaf_coeff is missing");
  FVM_ASSIGN(const std::vector<double> constants, reals_of(entries.leaf_const, leaves, &entries));
  FVM_ASSIGN(const std::vector<std::int64_t> counts, integers_of(entries.num_features, leaves, &entries));
  std::size_t all = 0;
  for (std::size_t i = 0; i < leaves; ++i) {
    if (counts[i] < 0 || counts[i] > std::numeric_limits<std::int32_t>::max())
      return node_error(entries, entries.num_features, leaves - 1 + i,
                        formatted("a linear function of {} features", counts[i]));
    all += static_cast<std::size_t>(counts[i]);
  }
  FVM_ASSIGN(const std::vector<std::int64_t> features, integers_of(entries.leaf_features, all, &entries));
  FVM_ASSIGN(const std::vector<double> coefficients, reals_of(entries.leaf_coeff, all, &entries));
  std::size_t at = 0;
  for (std::size_t i = 0; i < leaves; ++i) {
    LinearLeaf leaf;
    leaf.constant = constants[i];
    for (const std::size_t end = at + static_cast<std::size_t>(counts[i]); at < end; ++at) {
      if (features[at] < 0 || features[at] > std::numeric_limits<std::int32_t>::max())
        return node_error(entries, entries.leaf_features, leaves - 1 + i,
                          formatted("feature {} does not exist", features[at]));
      leaf.features.push_back(static_cast<std::uint32_t>(features[at]));
      leaf.coefficients.push_back(coefficients[at]);
    }
    tree.nodes[leaves - 1 + i].payload = static_cast<std::uint32_t>(i);
    tree.linear_leaves.push_back(std::move(leaf));
  }
  return {};
}

}  // namespace

Result<Tree> tree_of(const LightgbmTree& entries) {
  FVM_ASSIGN(const std::int64_t num_leaves, number_of(entries.num_leaves, 1, kMaxLeaves, &entries));
  const auto leaves = static_cast<std::size_t>(num_leaves);
  const std::size_t splits = leaves - 1;
  std::int64_t linear = 0;
  if (entries.is_linear.given()) {
    FVM_ASSIGN(linear, number_of(entries.is_linear, 0, 1, &entries));
  }
  // Reads the leaf values before nodes take memory, so that a small file cannot claim many leaves.
  FVM_ASSIGN(const std::vector<double> values, reals_of(entries.leaf_value, leaves, &entries));
  Tree tree;
  tree.nodes.resize(splits + leaves);
  tree.first_leaf = static_cast<std::uint32_t>(splits);
  for (std::size_t i = 0; i < leaves; ++i) {
    if (!std::isfinite(values[i]))
      return node_error(entries, entries.leaf_value, splits + i, "the leaf value is not finite");
    tree.nodes[splits + i].value = values[i];
  }
  FVM_TRY(add_splits(entries, leaves, tree));
  if (linear == 1) FVM_TRY(add_linear_leaves(entries, leaves, tree));
  FVM_TRY(add_covers(entries, entries.internal_count, splits, 0, tree));
  FVM_TRY(add_covers(entries, entries.leaf_count, leaves, splits, tree));
  FVM_TRY(add_gains(entries, splits, tree));
  return tree;
}

}  // namespace forestvm::frontend
