// One XGBoost tree: its columns -> Tree.
#include "xgboost_tree.hpp"

#include <cmath>
#include <limits>

namespace forestvm::frontend {
namespace {

constexpr std::int32_t leaf_marker = -1;  // in left_children
constexpr std::int32_t deleted_marker =
    std::numeric_limits<std::int32_t>::max();  // in split_indices: a pruned node

/// Errors of one tree: "learner...trees[3].split_type[7]: tree 3, node 7: message".
class TreeErrors {
 public:
  TreeErrors(std::size_t number, const std::string& path) : number_(number), path_(path) {}

  Error tree(const std::string& field, std::string message) const {
    return refused(path_ + field + ": tree " + std::to_string(number_), std::move(message));
  }
  Error node(const std::string& column, std::size_t node, std::string message) const {
    return refused(path_ + '.' + column + '[' + std::to_string(node) + "]: tree " + std::to_string(number_) +
                       ", node " + std::to_string(node),
                   std::move(message));
  }

 private:
  std::size_t number_;
  const std::string& path_;
};

Result<void> check_lengths(const XgboostTree& columns, const TreeErrors& errors) {
  const std::size_t nodes = columns.left_children.size();
  struct {
    const char* name;
    std::size_t length;
    bool optional;
  } const lengths[] = {
      {"right_children", columns.right_children.size(), false},
      {"split_indices", columns.split_indices.size(), false},
      {"split_conditions", columns.split_conditions.size(), false},
      {"default_left", columns.default_left.size(), false},
      {"sum_hessian", columns.sum_hessian.size(), true},
      {"split_type", columns.split_type.size(), true},
  };
  for (const auto& column : lengths) {
    if (column.length == nodes || (column.optional && column.length == 0)) continue;
    return errors.tree(
        std::string(".") + column.name,
        std::to_string(column.length) + " entries, but left_children has " + std::to_string(nodes));
  }
  if (columns.num_nodes != static_cast<std::int64_t>(nodes))
    return errors.tree(".tree_param.num_nodes", "says " + std::to_string(*columns.num_nodes) +
                                                    " nodes, but left_children has " + std::to_string(nodes));
  return nodes == 0 ? errors.tree("", "the tree has no nodes") : Result<void>{};
}

Result<Node> node_of(const XgboostTree& columns, std::size_t i, const TreeErrors& errors) {
  Node node;
  if (!columns.sum_hessian.empty()) node.cover = columns.sum_hessian[i];
  if (!std::isfinite(node.cover)) return errors.node("sum_hessian", i, "a number that is not finite");
  if (columns.split_indices[i] == deleted_marker) {
    node.kind = NodeKind::Unused;
    return node;
  }
  const float condition = columns.split_conditions[i];
  const bool leaf = columns.left_children[i] == leaf_marker;
  if (!std::isfinite(condition))
    return errors.node("split_conditions", i,
                       leaf ? "the leaf value is not finite" : "the threshold is not finite");
  if (leaf) {
    node.value = condition;
    return node;
  }
  if (!columns.split_type.empty() && columns.split_type[i] != 0)
    return errors.node("split_type", i,
                       columns.split_type[i] == 1
                           ? "categorical splits are not supported yet"
                           : "unknown split type " + std::to_string(columns.split_type[i]));
  if (columns.split_indices[i] < 0) return errors.node("split_indices", i, "a negative feature number");
  node.kind = NodeKind::Less;
  node.threshold = condition;
  node.left = columns.left_children[i];
  node.right = columns.right_children[i];
  node.feature = static_cast<std::uint32_t>(columns.split_indices[i]);
  node.missing_left = columns.default_left[i] != 0;
  return node;
}

}  // namespace

Result<Tree> tree_of(const XgboostTree& columns, std::size_t number, const std::string& path) {
  const TreeErrors errors(number, path);
  if (columns.size_leaf_vector.value_or(1) > 1 || !columns.leaf_weights.empty())
    return errors.tree(".tree_param.size_leaf_vector", "vector leaves are not supported yet");
  if (columns.size_leaf_vector.value_or(1) < 0)
    return errors.tree(".tree_param.size_leaf_vector", "a negative size");
  FVM_TRY(check_lengths(columns, errors));
  Tree tree;
  tree.nodes.reserve(columns.left_children.size());
  for (std::size_t i = 0; i < columns.left_children.size(); ++i) {
    FVM_ASSIGN(const Node node, node_of(columns, i, errors));
    tree.nodes.push_back(node);
  }
  return tree;
}

}  // namespace forestvm::frontend
