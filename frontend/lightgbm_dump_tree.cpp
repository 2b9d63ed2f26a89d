// See lightgbm_dump_tree.hpp.
#include "frontend/lightgbm_dump_tree.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

using DumpNode = LightgbmDumpNode;

constexpr double kInfinityInDumps = 1e300;

/// Makes one tree: numbers the nodes as a text model does, splits first and then leaves, and converts each.
class DumpTreeMaker {
 public:
  DumpTreeMaker(const std::vector<DumpNode>& nodes, const std::vector<double>& largest,
                const std::string& where)
      : nodes_(nodes), largest_(largest), where_(where) {}

  Result<Tree> make();

 private:
  Error error(std::size_t number, std::string_view message) const {
    const DumpNode& node = nodes_[number];
    const bool split = node.split_index.has_value();
    const std::int64_t index = split ? *node.split_index : node.leaf_index.value_or(0);
    return refused(formatted("{}, {}{}", where_, split ? "split " : "leaf ", index), message);
  }

  Result<void> number_nodes();
  Result<Node> split_of(std::size_t number);
  Result<Node> leaf_of(std::size_t number);
  Result<double> threshold_of(std::size_t number) const;
  Result<CategorySet> set_of(std::size_t number) const;
  Result<void> add_linear(std::size_t number, Node& node);

  const std::vector<DumpNode>& nodes_;
  const std::vector<double>& largest_;
  const std::string& where_;
  std::vector<std::int32_t> indices_;  // index in Tree::nodes of each node
  Tree tree_;
};

Result<void> DumpTreeMaker::number_nodes() {
  const auto splits = static_cast<std::size_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [](const DumpNode& node) { return node.split_index.has_value(); }));
  std::vector<char> taken(nodes_.size(), 0);
  tree_.first_leaf = static_cast<std::uint32_t>(splits);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const DumpNode& node = nodes_[i];
    const bool split = node.split_index.has_value();
    if (split == node.leaf_value.has_value())
      return error(i, "a node must have either split_index or leaf_value");
    if (!split && !node.leaf_index && nodes_.size() > 1) return error(i, "leaf_index is missing");
    const std::int64_t index = split ? *node.split_index : node.leaf_index.value_or(0);
    const std::size_t count = split ? splits : nodes_.size() - splits;
    if (index < 0 || static_cast<std::uint64_t>(index) >= count)
      return error(i, formatted("the tree has {}{}", count, split ? " splits" : " leaves"));
    const std::size_t at = static_cast<std::size_t>(index) + (split ? 0 : splits);
    if (taken[at] != 0) return error(i, "its number is given twice");
    taken[at] = 1;
    indices_.push_back(static_cast<std::int32_t>(at));
  }
  return {};
}

Result<double> DumpTreeMaker::threshold_of(std::size_t number) const {
  const DumpNode& node = nodes_[number];
  if (!node.threshold) return error(number, "threshold is missing or no number");
  if (std::abs(*node.threshold) < kInfinityInDumps) return *node.threshold;
  const auto feature = static_cast<std::size_t>(*node.split_feature);
  if (feature >= largest_.size() || !(largest_[feature] < kInfinityInDumps))
    return error(
        number,
        "threshold: LightGBM's dump writes 1e300 for infinity and for large numbers, which cannot be told "
        "apart here: save the model as text (Booster.save_model)");
  return std::copysign(std::numeric_limits<double>::infinity(), *node.threshold);
}

Result<CategorySet> DumpTreeMaker::set_of(std::size_t number) const {
  CategorySet set;
  set.members_left = true;
  set.rule = CategoryRule::AboveMinusOne;
  std::string_view text = *nodes_[number].extras->categories;
  while (!text.empty()) {
    std::uint32_t code = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), code);
    const auto length = static_cast<std::size_t>(end - text.data());
    const bool last = length == text.size();
    if (problem != std::errc() || code >= kMaxCategories || !(last || text.substr(length).starts_with("||")))
      return error(number, formatted("threshold: expected categories below {}, found {}", kMaxCategories,
                                     in_quotes(*nodes_[number].extras->categories)));
    set.codes.push_back(code);
    text.remove_prefix(last ? length : length + 2);
  }
  std::sort(set.codes.begin(), set.codes.end());
  return set;
}

Result<Node> DumpTreeMaker::split_of(std::size_t number) {
  const DumpNode& from = nodes_[number];
  Node node;
  if (from.left < 0 || from.right < 0) return error(number, "left_child or right_child is missing");
  if (!from.split_feature) return error(number, "split_feature is missing");
  if (*from.split_feature < 0 || *from.split_feature > std::numeric_limits<std::int32_t>::max())
    return error(number, formatted("feature {} does not exist", *from.split_feature));
  node.feature = static_cast<std::uint32_t>(*from.split_feature);
  node.left = indices_[static_cast<std::size_t>(from.left)];
  node.right = indices_[static_cast<std::size_t>(from.right)];
  node.kind = from.kind;
  if (node.kind == NodeKind::Category) {  // NaN is in no set, whatever missing_type says
    if (!from.extras || !from.extras->categories)
      return error(number, "threshold is missing or no list of categories");
    node.payload = static_cast<std::uint32_t>(tree_.category_sets.size());
    FVM_ASSIGN(CategorySet set, set_of(number));
    tree_.category_sets.push_back(std::move(set));
    return node;
  }
  if (node.kind != NodeKind::LessEqual) return error(number, "decision_type is missing");
  FVM_ASSIGN(node.threshold, threshold_of(number));
  if (!from.default_left) return error(number, "default_left is missing");
  node.missing_left = *from.default_left;
  if (!from.missing) return error(number, "missing_type is missing");
  node.missing = *from.missing;
  return node;
}

Result<void> DumpTreeMaker::add_linear(std::size_t number, Node& node) {
  const LightgbmDumpExtras& from = *nodes_[number].extras;
  LinearLeaf leaf;
  leaf.constant = *from.leaf_const;
  leaf.coefficients = from.leaf_coeff;
  for (const std::int64_t feature : from.leaf_features) {
    if (feature < 0 || feature > std::numeric_limits<std::int32_t>::max())
      return error(number, formatted("leaf_features: feature {} does not exist", feature));
    leaf.features.push_back(static_cast<std::uint32_t>(feature));
  }
  node.payload = static_cast<std::uint32_t>(tree_.linear_leaves.size());
  tree_.linear_leaves.push_back(std::move(leaf));
  return {};
}

Result<Node> DumpTreeMaker::leaf_of(std::size_t number) {
  const DumpNode& from = nodes_[number];
  Node node;
  node.value = *from.leaf_value;
  if (std::abs(node.value) >= kInfinityInDumps)
    return error(number, "leaf_value: LightGBM's dump writes 1e300 for larger numbers");
  if (from.left >= 0 || from.right >= 0) return error(number, "a leaf with children");
  if (from.extras && from.extras->leaf_const) FVM_TRY(add_linear(number, node));
  return node;
}

Result<Tree> DumpTreeMaker::make() {
  FVM_TRY(number_nodes());
  tree_.nodes.resize(nodes_.size());
  tree_.gains.resize(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const bool split = nodes_[i].split_index.has_value();
    FVM_ASSIGN(Node node, split ? split_of(i) : leaf_of(i));
    node.cover = nodes_[i].count;
    tree_.nodes[static_cast<std::size_t>(indices_[i])] = node;
    tree_.gains[static_cast<std::size_t>(indices_[i])] = nodes_[i].gain;
  }
  if (!tree_.linear_leaves.empty() && tree_.linear_leaves.size() != nodes_.size() - tree_.first_leaf)
    return refused(where_, "only some of the leaves have leaf_const");
  return std::move(tree_);
}

}  // namespace

Result<Tree> tree_of(const std::vector<DumpNode>& nodes, const std::vector<double>& largest,
                     const std::string& where) {
  if (nodes.empty()) return refused(where, "tree_structure is missing");
  return DumpTreeMaker(nodes, largest, where).make();
}

}  // namespace forestvm::frontend
