// Small LightGBM models for tests, written by hand.
#pragma once

#include <string>
#include <vector>

#include "load_text.hpp"

namespace forestvm::test {

/// Two splits and three leaves: the root's left child is leaf 1, its right child split 1.
struct SmallLightgbmTree {
  std::string num_leaves = "3";
  std::string num_cat = "0";
  std::string split_feature = "0 2";
  std::string threshold = "0.5 -1.25";
  std::string decision_type = "2 8";
  std::string left_child = "-2 -1";
  std::string right_child = "1 -3";
  std::string leaf_value = "0.125 0.25 0.10000000000000001";
  std::string leaf_count = "30 50 20";
  std::string internal_count = "100 50";
  std::string more = "is_linear=0\nshrinkage=0.1\n";

  std::string text(std::size_t number) const;
};

struct SmallLightgbm {
  std::string version = "v4";
  std::string num_class = "1";
  std::string num_tree_per_iteration = "1";
  std::string max_feature_idx = "2";
  std::string objective = "objective=regression\n";
  std::string average_output;  ///< line "average_output\n", or nothing
  std::string feature_names = "age height weight";
  std::string feature_infos = "[-1:1] none 0:1:2";
  bool tree_sizes = true;
  std::vector<SmallLightgbmTree> trees = std::vector<SmallLightgbmTree>(2);

  std::string text() const;
};

}  // namespace forestvm::test
