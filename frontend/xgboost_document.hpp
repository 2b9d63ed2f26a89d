// Reads the fields of an XGBoost model file without interpreting them. In: the bytes of a JSON or UBJSON file. Out: the
// header, and each tree's columns as soon as the tree ends, so that memory is proportional to the model and not to the
// document.
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
      offsets;  ///< For texts: first byte of each in `values`, then their end. For integers: none.
  std::vector<std::int64_t> values;  ///< Bytes of the texts, one after the other, or the integers.
};

/// The fields outside the trees. Fields that an older file lacks keep their defaults.
struct XgboostHeader {
  std::vector<std::int32_t> version;  ///< Numbers of XGBoost's version, e.g. 3, 2, 0.
  std::string booster;                ///< kind of the booster: "gbtree", "dart" or "gblinear"
  std::string objective;
  std::string base_score;  ///< text such as "5E-1", "[5E-1]" or "[1E0,2E0]"
  std::optional<std::int64_t> num_feature;
  std::optional<std::int64_t> num_class;
  std::optional<std::int64_t> num_target;
  std::optional<std::int64_t> num_trees;
  std::optional<std::int64_t> num_parallel_tree;
  std::vector<std::string> feature_names;
  std::vector<std::int32_t> tree_info;  ///< Output of each tree.
  /// Number of the first tree of each round, then the number of trees.
  std::vector<std::int32_t> iteration_indptr;
  std::vector<float> weight_drop;  ///< Weight of each tree, for DART.
  /// weight_drop at the place where release 3.4 writes it; empty without dropout.
  std::vector<float> model_weight_drop;
  std::vector<XgboostCategories> categories;  ///< Categories of each feature; empty if the file has none.
  std::string best_iteration;                 ///< Text of the attribute that early stopping sets.
  std::string model_path;  ///< JSON path of the object with the trees, which DART nests one deeper.
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
  // vectors of leaves, row-major (3.2 and later); a leaf has the number of its row as its right child
  std::vector<float> leaf_weights;
  std::vector<float>
      base_weights;  // a number for each node; in trees with vector leaves before 3.2, a vector for each node
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
