// One LightGBM tree: its entries -> Tree.
#include "lightgbm_tree.hpp"

#include <cmath>
#include <limits>

namespace forestvm::frontend {
namespace {

// The bits of decision_type.
constexpr std::int64_t category_bit = 1;
constexpr std::int64_t default_left_bit = 2;
constexpr int missing_shift = 2;
constexpr std::int64_t most_decision_type = 2 << missing_shift | default_left_bit | category_bit;

Missing missing_of(std::int64_t decision_type) {
  switch (decision_type >> missing_shift) {
    case 0:
      return Missing::None;
    case 1:
      return Missing::Zero;
    default:
      return Missing::Nan;
  }
}

Error node_error(const LightgbmTree& entries, const LightgbmEntry& entry, std::size_t node,
                 std::string message) {
  return refused(place_of(entry, &entries) + ", node " + std::to_string(node), std::move(message));
}

/// The splits' children: as they lie in Tree::nodes.
Result<void> add_children(const LightgbmTree& entries, const LightgbmEntry& entry, std::size_t leaves,
                          std::int32_t Node::*side, Tree& tree) {
  const auto splits = static_cast<std::int64_t>(leaves) - 1;
  FVM_ASSIGN(const std::vector<std::int64_t> children, integers_of(entry, leaves - 1, &entries));
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::int64_t child = children[i];
    if (child >= splits || child < -splits - 1)
      return node_error(entries, entry, i,
                        "child " + std::to_string(child) + " does not exist: the tree has " +
                            std::to_string(splits) + " splits and leaves to -" + std::to_string(leaves));
    tree.nodes[i].*side = static_cast<std::int32_t>(child >= 0 ? child : splits + ~child);
  }
  return {};
}

/// Counts of training rows, of the nodes from `first` on. Trees need not have them.
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

Result<void> add_decisions(const LightgbmTree& entries, std::size_t splits, Tree& tree) {
  FVM_ASSIGN(const std::vector<std::int64_t> types, integers_of(entries.decision_type, splits, &entries));
  for (std::size_t i = 0; i < splits; ++i) {
    if (types[i] < 0 || types[i] > most_decision_type)
      return node_error(entries, entries.decision_type, i,
                        "unknown decision type " + std::to_string(types[i]));
    if ((types[i] & category_bit) != 0)
      return node_error(entries, entries.decision_type, i, "categorical splits are not supported yet");
    tree.nodes[i].missing_left = (types[i] & default_left_bit) != 0;
    tree.nodes[i].missing = missing_of(types[i]);
  }
  return {};
}

Result<void> add_splits(const LightgbmTree& entries, std::size_t leaves, Tree& tree) {
  const std::size_t splits = leaves - 1;
  FVM_ASSIGN(const std::vector<std::int64_t> features, integers_of(entries.split_feature, splits, &entries));
  FVM_ASSIGN(const std::vector<double> thresholds, reals_of(entries.threshold, splits, &entries));
  FVM_TRY(add_decisions(entries, splits, tree));
  for (std::size_t i = 0; i < splits; ++i) {
    if (features[i] < 0 || features[i] > std::numeric_limits<std::int32_t>::max())
      return node_error(entries, entries.split_feature, i,
                        "feature " + std::to_string(features[i]) + " does not exist");
    tree.nodes[i].kind = NodeKind::LessEqual;
    tree.nodes[i].threshold = thresholds[i];
    tree.nodes[i].feature = static_cast<std::uint32_t>(features[i]);
  }
  FVM_TRY(add_children(entries, entries.left_child, leaves, &Node::left, tree));
  return add_children(entries, entries.right_child, leaves, &Node::right, tree);
}

}  // namespace

Result<Tree> tree_of(const LightgbmTree& entries) {
  constexpr std::int64_t most_leaves = std::int64_t{1} << 30;  // so that a node's index fits 31 bits
  FVM_ASSIGN(const std::int64_t num_leaves, number_of(entries.num_leaves, 1, most_leaves, &entries));
  const auto leaves = static_cast<std::size_t>(num_leaves);
  const std::size_t splits = leaves - 1;
  if (entries.is_linear.given()) {
    FVM_ASSIGN(const std::int64_t linear, number_of(entries.is_linear, 0, 1, &entries));
    if (linear == 1)
      return refused(place_of(entries.is_linear, &entries), "linear leaves are not supported yet");
  }
  // Before the nodes take memory, a leaf's worth of the file must be there for each.
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
  FVM_ASSIGN(const std::int64_t categories, number_of(entries.num_cat, 0, most_leaves, &entries));
  if (categories != 0)
    return refused(place_of(entries.num_cat, &entries),
                   "num_cat: " + std::to_string(categories) + " categorical splits, but the tree has none");
  FVM_TRY(add_covers(entries, entries.internal_count, splits, 0, tree));
  FVM_TRY(add_covers(entries, entries.leaf_count, leaves, splits, tree));
  return tree;
}

}  // namespace forestvm::frontend
