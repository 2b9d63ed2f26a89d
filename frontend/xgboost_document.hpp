// The fields of an XGBoost model file, not interpreted.
// In: the bytes of a JSON or UBJSON file. Out: the header, and each tree's columns as soon as the tree ends,
// so that memory is proportional to the model and not to the document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

#include "frontend/json_events.hpp"

namespace forestvm::frontend {

/// The categories of one feature, in the order of their codes, as the training data named them.
struct XgboostCategories {
  std::vector<std::int64_t>
      offsets;  ///< texts: first byte of each in `values`, then their end; integers: none
  std::vector<std::int64_t> values;  ///< bytes of the texts, one after the other, or the integers
};

/// The fields outside the trees. Fields that an older file lacks keep their defaults.
struct XgboostHeader {
  std::vector<std::int32_t> version;  ///< numbers of XGBoost's version, e.g. 3, 2, 0
  std::string booster;                ///< kind of the booster: "gbtree", "dart" or "gblinear"
  std::string objective;
  std::string base_score;  ///< text such as "5E-1", "[5E-1]" or "[1E0,2E0]"
  std::optional<std::int64_t> num_feature;
  std::optional<std::int64_t> num_class;
  std::optional<std::int64_t> num_target;
  std::optional<std::int64_t> num_trees;
  std::optional<std::int64_t> num_parallel_tree;
  std::vector<std::string> feature_names;
  std::vector<std::int32_t> tree_info;  ///< output of each tree
  std::vector<std::int32_t>
      iteration_indptr;                  ///< number of the first tree of each round, then the number of trees
  std::vector<float> weight_drop;        ///< weight of each tree, for DART
  std::vector<float> model_weight_drop;  ///< weight_drop where release 3.4 writes it; empty without dropout
  std::vector<XgboostCategories> categories;  ///< categories of each feature; empty if the file has none
  std::string best_iteration;                 ///< text of the attribute that early stopping sets
  std::string model_path;  ///< path of the object with the trees, which DART nests one deeper
};

/// One tree: a column for each field, with an entry for each node unless noted.
struct XgboostTree {
  std::vector<std::int32_t> left_children;
  std::vector<std::int32_t> right_children;
  std::vector<std::int32_t> split_indices;
  std::vector<std::int32_t> split_type;
  std::vector<float> split_conditions;
  std::vector<float> sum_hessian;
  std::vector<float> loss_changes;
  std::vector<std::uint8_t> default_left;
  std::vector<float>
      leaf_weights;  // vector leaves, row-major; a leaf's row is its right child (3.2 and later)
  std::vector<float>
      base_weights;  // a row for each node of a tree with vector leaves (before 3.2), else a number
  // The next four columns have no entries for nodes: `categories` has the codes of all categorical splits, one
  // split after the other; the others have for each of these splits its node, the index of its first code, and
  // the number of its codes.
  std::vector<std::int32_t> categories;
  std::vector<std::int32_t> categories_nodes;
  std::vector<std::int64_t> categories_segments;
  std::vector<std::int64_t> categories_sizes;
  std::optional<std::int64_t> num_nodes;
  std::optional<std::int64_t> size_leaf_vector;

  /// Empties the columns, and keeps their memory.
  void clear();
};

/// Called at the end of each tree with its number and its JSON path.
using TreeReceiver =
    std::function<Result<void>(const XgboostTree& tree, std::size_t number, const std::string& path)>;

/// Reads the document. Refuses, with the JSON path, a value of the wrong type, a field given twice, a required
/// field missing, and a booster that is not made of trees. Returns also the errors of `receive`.
Result<XgboostHeader> read_xgboost_document(std::span<const std::byte> bytes, Syntax syntax,
                                            std::uint32_t max_depth, const TreeReceiver& receive);

}  // namespace forestvm::frontend
