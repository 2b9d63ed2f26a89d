// See check_model.hpp. Nothing here is recursive: a tree may be a chain of millions of nodes.
#include "frontend/check_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include <forestvm/internal/formatted.hpp>

#include "frontend/check_columns.hpp"

namespace forestvm::frontend {
namespace {

/// Checks trees one by one. It is one object for all trees, so that the memory of `seen_` and `waiting_` is used again.
class TreeCheck {
 public:
  TreeCheck(const Model& model, const TreeLocation& location)
      : model_(model), location_(location), columns_(num_columns(model)) {}

  Result<void> check(std::size_t number) {
    number_ = number;
    tree_ = &model_.trees[number];
    FVM_TRY(check_shape());
    for (std::size_t i = 0; i < tree_->nodes.size(); ++i) FVM_TRY(check_node(i));
    FVM_TRY(check_sets());
    return check_links();
  }

 private:
  Error error(std::optional<std::size_t> node, std::string_view message) const {
    std::string where;
    if (location_) where = location_(number_) + ": ";
    where += formatted("tree {}", number_);
    if (node) where += formatted(", node {}", *node);
    return refused(where, message);
  }

  static bool is_exact(double x, ScalarType type) {
    return std::isfinite(x) &&
           (type == ScalarType::Float64 ||
            (std::abs(x) <= std::numeric_limits<float>::max() && static_cast<float>(x) == x));
  }

  bool is_output(double value) const {
    return is_exact(value, model_.score_type) || (model_.may_lack_answers && std::isnan(value));
  }

  Result<void> check_shape() const;
  Result<void> check_node(std::size_t i) const;
  Result<void> check_leaf(std::size_t i) const;
  Result<void> check_sets() const;
  Result<void> check_links();

  const Model& model_;
  const TreeLocation& location_;
  std::uint64_t columns_;
  std::size_t number_ = 0;
  const Tree* tree_ = nullptr;
  std::vector<char> seen_;
  std::vector<std::int32_t> waiting_;
};

Result<void> TreeCheck::check_shape() const {
  if (tree_->nodes.empty()) return error({}, "the tree has no nodes");
  if (tree_->output >= model_.num_outputs)
    return error({}, formatted("output {} of a model with {}", tree_->output, model_.num_outputs));
  if (!std::isfinite(tree_->weight)) return error({}, "the tree's weight is not finite");
  if (tree_->leaf_width != 1 && tree_->leaf_width != model_.num_outputs)
    return error({}, formatted("leaves of {} values for {} outputs", tree_->leaf_width, model_.num_outputs));
  const bool vectors = tree_->leaf_width > 1;
  if (tree_->leaf_vectors.size() % tree_->leaf_width != 0 || (!vectors && !tree_->leaf_vectors.empty()))
    return error({}, "the leaf vectors do not fill whole leaves");
  if (!tree_->gains.empty() && tree_->gains.size() != tree_->nodes.size())
    return error({}, formatted("{} gains for {} nodes", tree_->gains.size(), tree_->nodes.size()));
  return {};
}

Result<void> TreeCheck::check_leaf(std::size_t i) const {
  const Node& node = tree_->nodes[i];
  if (i < tree_->first_leaf) return error(i, "a leaf before the tree's first");
  if (tree_->leaf_width > 1) {
    if (node.payload >= tree_->leaf_vectors.size() / tree_->leaf_width)
      return error(i, "the leaf has no vector");
  } else if (!tree_->linear_leaves.empty()) {
    if (node.payload >= tree_->linear_leaves.size()) return error(i, "the leaf has no linear function");
  }
  if (!is_output(node.value))
    return error(i, "the leaf value is not finite, or not exact in the model's type");
  return {};
}

Result<void> TreeCheck::check_node(std::size_t i) const {
  const Node& node = tree_->nodes[i];
  if (!std::isfinite(node.cover)) return error(i, "the cover is not finite");
  switch (node.kind) {
    case NodeKind::Unused:
      return i == 0 ? error(i, "the root is a deleted node") : Result<void>{};
    case NodeKind::Leaf:
      return check_leaf(i);
    case NodeKind::Less:
    case NodeKind::LessEqual:
      if (!is_exact(node.threshold, model_.row_type) &&
          !(node.kind == NodeKind::LessEqual && std::isinf(node.threshold)))
        return error(i, "the threshold is not finite, or not exact in the model's type");
      break;
    case NodeKind::Category:
      if (node.payload >= tree_->category_sets.size()) return error(i, "the split has no category set");
      if (node.missing != Missing::Nan)
        return error(i, "a categorical split that takes more than NaN as missing");
      break;
  }
  if (node.feature >= columns_)
    return error(i, formatted("feature {} does not exist: the model has {}", node.feature, columns_));
  const std::vector<std::uint32_t>& hashed = model_.hashed_features;
  if (std::binary_search(hashed.begin(), hashed.end(), node.feature))
    return error(i, formatted("a split of feature {}, which only lookups may test", node.feature));
  return {};
}

Result<void> TreeCheck::check_sets() const {
  for (const CategorySet& set : tree_->category_sets) {
    for (std::size_t i = 1; i < set.codes.size(); ++i)
      if (set.codes[i - 1] >= set.codes[i]) return error({}, "the codes of a category set are not ascending");
    if (!set.codes.empty() && set.codes.back() >= kMaxCategories)
      return error({},
                   formatted("category {} is over the limit of {}", set.codes.back(), kMaxCategories - 1));
  }
  for (const LinearLeaf& leaf : tree_->linear_leaves) {
    if (leaf.features.size() != leaf.coefficients.size())
      return error({}, "a linear leaf with features and no coefficients");
    bool good = std::isfinite(leaf.constant);
    for (const double coefficient : leaf.coefficients) good = good && std::isfinite(coefficient);
    if (!good) return error({}, "a linear leaf with a number that is not finite");
    for (const std::uint32_t feature : leaf.features)
      if (feature >= model_.num_features)
        return error({}, formatted("a linear leaf uses feature {}", feature));
  }
  for (const double value : tree_->leaf_vectors)
    if (!is_output(value)) return error({}, "a leaf vector holds a number that is not finite, or not exact");
  return {};
}

/// Walks the tree from its root: no node may be reached twice, and every used one must be reached.
Result<void> TreeCheck::check_links() {
  const std::vector<Node>& nodes = tree_->nodes;
  seen_.assign(nodes.size(), 0);
  waiting_.assign(1, 0);
  seen_[0] = 1;
  while (!waiting_.empty()) {
    const auto at = static_cast<std::size_t>(waiting_.back());
    waiting_.pop_back();
    if (nodes[at].kind == NodeKind::Leaf) continue;
    for (const std::int32_t child : {nodes[at].right, nodes[at].left}) {
      if (child < 0 || static_cast<std::size_t>(child) >= nodes.size())
        return error(at, formatted("child {} does not exist: the tree has {} nodes", child, nodes.size()));
      const auto to = static_cast<std::size_t>(child);
      if (nodes[to].kind == NodeKind::Unused)
        return error(at, formatted("child {} is a deleted node", child));
      if (seen_[to] != 0)
        return error(at, formatted("child {} is reached twice: a cycle or a shared subtree", child));
      seen_[to] = 1;
      waiting_.push_back(child);
    }
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (seen_[i] == 0 && nodes[i].kind != NodeKind::Unused)
      return error(i, "the node cannot be reached from the root");
  return {};
}

Error model_error(std::string_view what) { return refused("model", what); }

Result<void> check_header(const Model& model) {
  if (model.num_outputs == 0) return model_error("no outputs");
  if (model.base.size() != model.num_outputs)
    return model_error(formatted("{} base margins for {} outputs", model.base.size(), model.num_outputs));
  if (model.row_type == ScalarType::Float64 && model.score_type == ScalarType::Float32)
    return model_error("float64 rows and float32 scores");
  if (!std::isfinite(model.slope)) return model_error("the transform's slope is not finite");
  if (!std::isfinite(model.offset)) return model_error("the transform's offset is not finite");
  if (!std::isfinite(model.divisor) || model.divisor == 0)
    return model_error("the transform's divisor is zero or not finite");
  if (!std::isfinite(model.scale) || model.scale == 0) return model_error("the scale is zero or not finite");
  if (model.scale != 1 && !model.base_last) return model_error("a scale of sums that begin with the base");
  if (model.averaged && model.trees.size() < trees_per_round(model))
    return model_error("an average over no rounds");
  if (model.pair != Pair::None && model.num_outputs != 1)
    return model_error("pairs of values for more than one output");
  if (model.transform == Transform::Uncertainty && model.num_outputs != 2)
    return model_error(formatted("means and variances for {} outputs", model.num_outputs));
  if (model.transform == Transform::WeightedMedian && model.num_outputs % 2 != 0)
    return model_error(formatted("a weighted median of {} outputs, which are scores and as many weights",
                                 model.num_outputs));
  if (!are_group_ends(model.class_rule, model.num_outputs, model.group_ends))
    return model_error(formatted("the groups of outputs do not cover {} outputs", model.num_outputs));
  // Minus infinity is allowed: it is the base of an output to which no tree adds and which must never be the largest.
  for (const double margin : model.base)
    if (!std::isfinite(margin) && !(model.base_last && margin == -std::numeric_limits<double>::infinity()))
      return model_error("a base margin is not finite");
  if (!model.feature_names.empty() && model.feature_names.size() != model.num_features)
    return model_error(
        formatted("{} feature names for {} features", model.feature_names.size(), model.num_features));
  for (std::size_t i = 0; i < model.categories.size(); ++i) {
    const FeatureCategories& named = model.categories[i];
    if (named.feature >= model.num_features || (i != 0 && named.feature <= model.categories[i - 1].feature))
      return model_error("features with named categories that do not exist or do not ascend");
    if (named.unseen && !std::isnan(*named.unseen) && !(*named.unseen >= 0 && *named.unseen < kMaxCategories))
      return model_error(formatted("feature {} has no category for texts without a name", named.feature));
    if (named.names.size() > kMaxCategories)
      return model_error(formatted("feature {} has {} categories, over the limit of {}", named.feature,
                                   named.names.size(), kMaxCategories));
  }
  const std::vector<std::uint32_t>& rounds = model.round_begins;
  if (rounds.empty() || rounds.front() != 0 || rounds.back() != model.trees.size())
    return model_error("the rounds do not cover the trees");
  for (std::size_t i = 1; i < rounds.size(); ++i)
    if (rounds[i - 1] > rounds[i]) return model_error("the rounds are not in ascending order");
  return {};
}

}  // namespace

Result<void> check_model(const Model& model, const TreeLocation& location) {
  FVM_TRY(check_header(model));
  FVM_TRY(check_columns(model));
  TreeCheck trees(model, location);
  for (std::size_t i = 0; i < model.trees.size(); ++i) FVM_TRY(trees.check(i));
  return {};
}

}  // namespace forestvm::frontend
