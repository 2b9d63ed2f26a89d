// See sklearn_tree.hpp. scikit-learn's sklearn/tree/_tree.pxd defines the fields; missing_go_to_left exists from
// release 1.3 on.
#include "frontend/sklearn_tree.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

constexpr std::size_t kMaxTreeNodes = std::size_t{1} << 30;
/// The least size in bytes of scikit-learn's nodes: the size of the fields that are read, where integers have 32 bits.
constexpr std::uint32_t kMinTreeNodeSize = 36;

bool is_tree(const std::string& type) {
  return type.starts_with("sklearn.tree.") &&
         (type.ends_with(".DecisionTreeClassifier") || type.ends_with(".DecisionTreeRegressor") ||
          type.ends_with(".ExtraTreeClassifier") || type.ends_with(".ExtraTreeRegressor"));
}

}  // namespace

double float_at_most(double x) {
  constexpr double most = static_cast<double>(std::numeric_limits<float>::max());
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (std::isinf(x)) return x;
  if (x >= most) return most;
  if (x < -most) return -infinity;
  const auto rounded = static_cast<float>(x);
  if (static_cast<double>(rounded) <= x) return static_cast<double>(rounded);
  return static_cast<double>(std::nextafter(rounded, -std::numeric_limits<float>::infinity()));
}

Result<void> SklearnTree::read_nodes(const PythonRef& nodes) {
  FVM_ASSIGN(nodes_, nodes.array());
  if (nodes_.count == 0 || nodes_.count > kMaxTreeNodes)
    return nodes.error(formatted("a tree of {} nodes", nodes_.count));
  if (nodes_.item_size < kMinTreeNodeSize)
    return nodes.error(formatted("nodes of {} bytes: scikit-learn's are larger", nodes_.item_size));
  using Wanted = NumpyArray::Wanted;
  FVM_ASSIGN(left_, nodes.column(nodes_, "left_child", Wanted::Integers));
  FVM_ASSIGN(right_, nodes.column(nodes_, "right_child", Wanted::Integers));
  FVM_ASSIGN(feature_, nodes.column(nodes_, "feature", Wanted::Integers));
  FVM_ASSIGN(threshold_, nodes.column(nodes_, "threshold", Wanted::Numbers));
  FVM_ASSIGN(samples_, nodes.column(nodes_, "n_node_samples", Wanted::Integers));
  FVM_ASSIGN(weight_, nodes.column(nodes_, "weighted_n_node_samples", Wanted::Numbers));
  if (!nodes_.has("missing_go_to_left")) return {};
  FVM_ASSIGN(missing_left_, nodes.column(nodes_, "missing_go_to_left", Wanted::Integers));
  return {};
}

Result<void> SklearnTree::read_values(const PythonRef& values) {
  FVM_ASSIGN(values_, values.array());
  const std::vector<std::uint64_t>& shape = values_.shape;
  if (shape.size() != 3 || shape[0] != nodes_.count || shape[1] == 0 || shape[2] == 0)
    return values.error(
        formatted("expected an array of {} nodes, their outputs and their classes", nodes_.count));
  const Result<NumpyColumn> column = values_.column("", NumpyArray::Wanted::Numbers);
  if (!column.ok() || !column->is_real() || values_.item_size != sizeof(double))
    return values.error("expected an array of float64");
  value_ = *column;
  outputs_ = shape[1];
  classes_ = shape[2];
  return {};
}

Result<SklearnTree> SklearnTree::read(const PythonRef& estimator) {
  if (!is_tree(estimator.type()))
    return estimator.error(formatted("an ensemble of {}: only ensembles of decision trees are read",
                                     printable(estimator.type())));
  FVM_ASSIGN(const PythonRef state, estimator.get("tree_"));
  FVM_ASSIGN(const PythonRef nodes, state.get("nodes"));
  FVM_ASSIGN(const PythonRef values, state.get("values"));
  SklearnTree tree(state);
  FVM_TRY(tree.read_nodes(nodes));
  FVM_TRY(tree.read_values(values));
  return tree;
}

Error SklearnTree::error(std::size_t node, std::string_view message) const {
  return refused(formatted("{}, node {}", state_.place(), node), message);
}

/// Refuses a child that does not stand behind its parent, where scikit-learn writes it. So no node is its own ancestor.
Result<void> SklearnTree::check_children(std::size_t node) const {
  for (const std::int64_t child : {left_.integer(node), right_.integer(node)})
    if (child <= static_cast<std::int64_t>(node) || child >= static_cast<std::int64_t>(size()))
      return error(node, formatted("child {} is not behind it, or does not exist: the tree has {} nodes",
                                   child, size()));
  return {};
}

Result<std::uint32_t> SklearnTree::feature_of(std::size_t node, std::span<const std::int64_t> features,
                                              std::uint32_t num_features) const {
  const std::int64_t own = feature_.integer(node);
  const std::size_t count = features.empty() ? num_features : features.size();
  if (own < 0 || static_cast<std::uint64_t>(own) >= count)
    return error(node, formatted("feature {} does not exist: the tree has {}", own, count));
  return static_cast<std::uint32_t>(features.empty() ? own : features[static_cast<std::size_t>(own)]);
}

Result<std::vector<std::int64_t>> SklearnTree::path_lengths() const {
  std::vector<std::int64_t> lengths(size());
  lengths[0] = 1;
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_leaf(i)) continue;
    FVM_TRY(check_children(i));
    for (const std::int64_t child : {left_.integer(i), right_.integer(i)})
      lengths[static_cast<std::size_t>(child)] = lengths[i] + 1;
  }
  return lengths;
}

Result<Tree> SklearnTree::tree(std::span<const std::int64_t> features, std::uint32_t num_features,
                               std::uint32_t width, const FillLeaf& fill) const {
  Tree tree;
  tree.leaf_width = width;
  tree.nodes.resize(size());
  std::vector<double> outputs(width);
  for (std::size_t i = 0; i < size(); ++i) {
    Node& node = tree.nodes[i];
    node.cover = static_cast<float>(weight_.real(i));
    if (is_leaf(i)) {
      if (right_.integer(i) >= 0) return error(i, "has a right child and no left one");
      fill(i, outputs);
      if (width == 1) {
        node.value = outputs[0];
      } else {
        node.payload = static_cast<std::uint32_t>(tree.leaf_vectors.size() / width);
        tree.leaf_vectors.insert(tree.leaf_vectors.end(), outputs.begin(), outputs.end());
      }
      continue;
    }
    FVM_TRY(check_children(i));
    FVM_ASSIGN(node.feature, feature_of(i, features, num_features));
    node.kind = NodeKind::LessEqual;
    node.threshold = float_at_most(threshold_.real(i));
    node.left = static_cast<std::int32_t>(left_.integer(i));
    node.right = static_cast<std::int32_t>(right_.integer(i));
    node.missing_left = missing_left_.size() != 0 && missing_left_.integer(i) != 0;
  }
  return tree;
}

}  // namespace forestvm::frontend
