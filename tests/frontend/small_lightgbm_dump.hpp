// A small JSON dump of LightGBM for tests, written by hand.
#pragma once

#include <string>

namespace forestvm::test {

/// The model of SmallLightgbm with one tree, and with a second tree that has a categorical split.
inline std::string small_lightgbm_dump() {
  return R"({"name": "tree", "version": "v4", "num_class": 1, "num_tree_per_iteration": 1, "label_index": 0,
"max_feature_idx": 2, "objective": "binary sigmoid:0.5", "average_output": false,
"feature_names": ["age", "height", "weight"], "monotone_constraints": [],
"feature_infos": {"age": {"min_value": -1, "max_value": 1, "values": []},
  "weight": {"min_value": 0, "max_value": 2, "values": [0, 1, 2]}},
"tree_info": [
{"tree_index": 0, "num_leaves": 3, "num_cat": 0, "shrinkage": 0.1, "tree_structure":
 {"split_index": 0, "split_feature": 0, "split_gain": 3, "threshold": 0.5, "decision_type": "<=",
  "default_left": true, "missing_type": "None", "internal_value": 0, "internal_count": 100,
  "left_child": {"leaf_index": 1, "leaf_value": 0.25, "leaf_weight": 50, "leaf_count": 50},
  "right_child": {"split_index": 1, "split_feature": 1, "threshold": 1e+300, "decision_type": "<=",
   "default_left": false, "missing_type": "NaN", "internal_count": 50,
   "left_child": {"leaf_index": 0, "leaf_value": 0.125, "leaf_count": 30},
   "right_child": {"leaf_index": 2, "leaf_value": 0.10000000000000001, "leaf_count": 20}}}},
{"tree_index": 1, "num_leaves": 2, "num_cat": 1, "shrinkage": 0.1, "tree_structure":
 {"split_index": 0, "split_feature": 2, "threshold": "2||0||40", "decision_type": "==", "default_left": false,
  "missing_type": "None", "internal_count": 100,
  "left_child": {"leaf_index": 0, "leaf_value": 1, "leaf_count": 30, "leaf_const": 3,
   "leaf_features": [0, 1], "leaf_coeff": [0.5, -2]},
  "right_child": {"leaf_index": 1, "leaf_value": 2, "leaf_count": 70, "leaf_const": 4,
   "leaf_features": [], "leaf_coeff": []}}}],
"feature_importances": {"age": 2}, "pandas_categorical": [["a", 1, true]]})";
}

}  // namespace forestvm::test
