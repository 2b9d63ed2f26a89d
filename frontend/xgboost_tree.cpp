// See xgboost_tree.hpp.
#include "frontend/xgboost_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

constexpr std::int32_t kLeafMarker = -1;  // in left_children
constexpr std::int32_t kDeletedMarker =
    std::numeric_limits<std::int32_t>::max();  // in split_indices: a pruned node

/// Makes the errors of one tree, such as "learner...trees[3].split_type[7]: tree 3, node 7: message".
class TreeErrors {
 public:
  TreeErrors(std::size_t number, const std::string& path) : number_(number), path_(path) {}

  Error tree(const std::string& field, std::string_view message) const {
    return refused(formatted("{}{}: tree {}", path_, field, number_), message);
  }
  Error node(const std::string& column, std::size_t node, std::string_view message) const {
    return entry(column, node, node, message);
  }
  Error entry(const std::string& column, std::size_t index, std::size_t node,
              std::string_view message) const {
    return refused(formatted("{}.{}[{}]: tree {}, node {}", path_, column, index, number_, node), message);
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
      {"loss_changes", columns.loss_changes.size(), true},
      {"split_type", columns.split_type.size(), true},
  };
  for (const auto& column : lengths) {
    if (column.length == nodes || (column.optional && column.length == 0)) continue;
    return errors.tree(std::string(".") + column.name,
                       formatted("{} entries, but left_children has {}", column.length, nodes));
  }
  if (columns.num_nodes != static_cast<std::int64_t>(nodes))
    return errors.tree(".tree_param.num_nodes",
                       formatted("says {} nodes, but left_children has {}", *columns.num_nodes, nodes));
  return nodes == 0 ? errors.tree("", "the tree has no nodes") : Result<void>{};
}

Result<Node> node_of(const XgboostTree& columns, std::size_t i, std::uint32_t leaf_width,
                     const TreeErrors& errors) {
  Node node;
  if (!columns.sum_hessian.empty()) node.cover = columns.sum_hessian[i];
  if (!std::isfinite(node.cover)) return errors.node("sum_hessian", i, "a number that is not finite");
  if (columns.split_indices[i] == kDeletedMarker) {
    node.kind = NodeKind::Unused;
    return node;
  }
  const float condition = columns.split_conditions[i];
  const bool leaf = columns.left_children[i] == kLeafMarker;
  if (leaf && leaf_width > 1) return node;
  const std::int32_t type = leaf || columns.split_type.empty() ? 0 : columns.split_type[i];
  if (type != 0 && type != 1) return errors.node("split_type", i, formatted("unknown split type {}", type));
  if (!std::isfinite(condition) && type == 0)
    return errors.node("split_conditions", i,
                       leaf ? "the leaf value is not finite" : "the threshold is not finite");
  if (leaf) {
    node.value = condition;
    return node;
  }
  if (columns.split_indices[i] < 0) return errors.node("split_indices", i, "a negative feature number");
  node.kind = type == 0 ? NodeKind::Less : NodeKind::Category;
  if (type == 0) node.threshold = condition;  // categorical splits have no threshold
  node.left = columns.left_children[i];
  node.right = columns.right_children[i];
  node.feature = static_cast<std::uint32_t>(columns.split_indices[i]);
  node.missing_left = columns.default_left[i] != 0;
  return node;
}

/// Returns the set of the tree's categorical split `number`. Its codes must begin after the codes of the
/// splits before it, so that a tree's sets take no more memory than the file does.
Result<CategorySet> set_of(const XgboostTree& columns, std::size_t number, std::int64_t& taken,
                           const TreeErrors& errors) {
  const auto node = static_cast<std::size_t>(columns.categories_nodes[number]);
  const std::int64_t begin = columns.categories_segments[number], size = columns.categories_sizes[number];
  const auto codes = static_cast<std::int64_t>(columns.categories.size());
  if (begin < taken || begin > codes || size < 1 || size > codes - begin)
    return errors.entry(
        "categories_segments", number, node,
        formatted("{} categories from {} on do not lie between {} and the end of the tree's {}", size, begin,
                  taken, codes));
  taken = begin + size;
  CategorySet set;
  for (std::int64_t i = begin; i < taken; ++i) {
    const std::int32_t code = columns.categories[static_cast<std::size_t>(i)];
    const auto wrong = [&](const std::string& what) {
      return errors.entry("categories", static_cast<std::size_t>(i), node,
                          formatted("category {}{}", code, what));
    };
    if (code < 0) return wrong(" is negative");
    if (static_cast<std::uint32_t>(code) >= kMaxCategories)
      return wrong(formatted(" is over the limit of {}", kMaxCategories - 1));
    if (!set.codes.empty() && static_cast<std::uint32_t>(code) <= set.codes.back())
      return wrong(formatted(" does not come after {}", set.codes.back()));
    set.codes.push_back(static_cast<std::uint32_t>(code));
  }
  return set;
}

/// Sets the categories of the categorical splits. Each has one set, whose members go right.
Result<void> add_categories(const XgboostTree& columns, const TreeErrors& errors, Tree& tree) {
  const std::size_t sets = columns.categories_nodes.size();
  if (columns.categories_segments.size() != sets || columns.categories_sizes.size() != sets)
    return errors.tree(".categories_nodes",
                       formatted("{} entries, but categories_segments has {} and categories_sizes {}", sets,
                                 columns.categories_segments.size(), columns.categories_sizes.size()));
  std::int64_t before = -1, taken = 0;
  for (std::size_t i = 0; i < sets; ++i) {
    const std::int32_t node = columns.categories_nodes[i];
    if (node <= before) return errors.tree(".categories_nodes", "its nodes are not ascending");
    before = node;
    const auto at = static_cast<std::size_t>(node);
    if (at >= tree.nodes.size() || tree.nodes[at].kind != NodeKind::Category)
      return errors.tree(".categories_nodes",
                         formatted("node {} is not a categorical split of the tree", node));
    FVM_ASSIGN(CategorySet set, set_of(columns, i, taken, errors));
    tree.nodes[at].payload = static_cast<std::uint32_t>(i);
    tree.category_sets.push_back(std::move(set));
  }
  const auto splits = std::count_if(tree.nodes.begin(), tree.nodes.end(),
                                    [](const Node& node) { return node.kind == NodeKind::Category; });
  if (static_cast<std::size_t>(splits) == sets) return {};
  return errors.tree(".categories_nodes", formatted("{} entries for {} categorical splits", sets, splits));
}

/// Returns the number of values in a leaf. Releases before 2.0 write 0 for scalar leaves.
Result<std::uint32_t> leaf_width_of(const XgboostTree& columns, const TreeErrors& errors) {
  const std::int64_t size = columns.size_leaf_vector.value_or(1);
  if (size < 0) return errors.tree(".tree_param.size_leaf_vector", "a negative size");
  if (size > std::numeric_limits<std::int32_t>::max())
    return errors.tree(".tree_param.size_leaf_vector", formatted("{} values per leaf", size));
  if (size <= 1 && !columns.leaf_weights.empty())
    return errors.tree(".leaf_weights", "vectors in a tree with one value per leaf");
  return static_cast<std::uint32_t>(size <= 1 ? 1 : size);
}

/// Sets the vectors of the leaves. XGBoost 3.2 and later have a column for them; earlier releases have them among the
/// base weights of all nodes.
Result<void> add_leaf_vectors(const XgboostTree& columns, const TreeErrors& errors, Tree& tree) {
  const bool own_column = !columns.leaf_weights.empty();
  const char* name = own_column ? "leaf_weights" : "base_weights";
  const std::vector<float>& weights = own_column ? columns.leaf_weights : columns.base_weights;
  const std::size_t rows = weights.size() / tree.leaf_width;
  if (weights.size() % tree.leaf_width != 0 || (!own_column && rows != tree.nodes.size()))
    return errors.tree(std::string(".") + name,
                       formatted("{} entries for leaves of {} values", weights.size(), tree.leaf_width));
  std::vector<char> taken(rows, 0);
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    Node& node = tree.nodes[i];
    if (node.kind != NodeKind::Leaf) continue;
    const std::size_t row = own_column ? static_cast<std::uint32_t>(columns.right_children[i]) : i;
    if (row >= rows || taken[row] != 0)
      return errors.node("right_children", i,
                         formatted("vector {}{}", columns.right_children[i],
                                   row >= rows ? formatted(" does not exist: the tree has {}", rows)
                                               : " belongs to two leaves"));
    taken[row] = 1;
    node.payload = static_cast<std::uint32_t>(tree.leaf_vectors.size() / tree.leaf_width);
    for (std::size_t k = row * tree.leaf_width; k < (row + 1) * tree.leaf_width; ++k) {
      if (!std::isfinite(weights[k])) return errors.entry(name, k, i, "the leaf value is not finite");
      tree.leaf_vectors.push_back(weights[k]);
    }
  }
  return {};
}

}  // namespace

Result<Tree> tree_of(const XgboostTree& columns, std::size_t number, const std::string& path) {
  const TreeErrors errors(number, path);
  FVM_TRY(check_lengths(columns, errors));
  Tree tree;
  FVM_ASSIGN(tree.leaf_width, leaf_width_of(columns, errors));
  tree.nodes.reserve(columns.left_children.size());
  for (std::size_t i = 0; i < columns.left_children.size(); ++i) {
    FVM_ASSIGN(const Node node, node_of(columns, i, tree.leaf_width, errors));
    tree.nodes.push_back(node);
  }
  tree.gains = columns.loss_changes;
  if (tree.leaf_width > 1) FVM_TRY(add_leaf_vectors(columns, errors, tree));
  FVM_TRY(add_categories(columns, errors, tree));
  return tree;
}

}  // namespace forestvm::frontend
