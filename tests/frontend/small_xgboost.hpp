// Small XGBoost models for tests, written by hand: one description, two file forms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load_text.hpp"

namespace forestvm::test {

struct SmallTree {
  std::vector<int> left = {1, -1, -1};
  std::vector<int> right = {2, -1, -1};
  std::vector<int> feature = {0, 0, 0};
  std::vector<float> condition = {0.5f, -1.0f, 2.0f};
  std::vector<int> default_left = {1, 0, 0};
  std::vector<int> split_type = {0, 0, 0};
  std::string size_leaf_vector = "1";
  std::vector<int> categories = {};
  std::vector<int> categories_nodes = {};
  std::vector<int> categories_segments = {};
  std::vector<int> categories_sizes = {};
  std::vector<float> base_weights = {};  ///< empty: a number for each node
  std::vector<float> leaf_weights = {};  ///< empty: the column is absent
};

/// The categories of a feature: texts have offsets, and the values are bytes.
struct SmallCategories {
  std::vector<int> offsets, values;
};

struct SmallXgboost {
  std::vector<int> version = {3, 2, 0};
  std::string booster = "gbtree";
  std::string objective = "reg:squarederror";
  std::string base_score = "[5E-1]";
  std::string num_feature = "3";
  std::string num_class = "0";
  std::optional<std::string> num_target = "1";
  std::string num_parallel_tree = "1";
  std::vector<SmallTree> trees = {SmallTree{},
                                  SmallTree{{2, -1, -1}, {1, -1, -1}, {2, 0, 0}, {1.5f, 0.25f, 0.125f}}};
  std::vector<int> tree_info = {0, 0};
  std::optional<std::vector<int>> iteration_indptr = std::vector<int>{0, 1, 2};
  std::vector<float> weight_drop;
  std::vector<std::string> feature_names;
  std::vector<SmallCategories> categories;  ///< one for each feature, or none at all
  std::string best_iteration;               ///< empty: the attribute is absent
  bool flags_as_words = false;  ///< true: default_left is true or false, as in JSON of XGBoost 1.x
  bool split_types = true;      ///< false: split_type is absent, as in old files

  std::string json() const;
  std::string ubj() const;
};

}  // namespace forestvm::test
