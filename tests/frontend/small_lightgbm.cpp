// Small LightGBM models for tests, written by hand.
#include "small_lightgbm.hpp"

namespace forestvm::test {

std::string SmallLightgbmTree::text(std::size_t number) const {
  const char* const gains = split_feature.empty()                          ? ""
                            : split_feature.find(' ') == std::string::npos ? "3"
                                                                           : "3 1";
  return "Tree=" + std::to_string(number) + "\nnum_leaves=" + num_leaves + "\nnum_cat=" + num_cat +
         "\nsplit_feature=" + split_feature + "\nsplit_gain=" + gains + "\nthreshold=" + threshold +
         "\ndecision_type=" + decision_type + "\nleft_child=" + left_child + "\nright_child=" + right_child +
         "\nleaf_value=" + leaf_value + "\nleaf_weight=30 50 20\nleaf_count=" + leaf_count +
         "\ninternal_value=0 0\ninternal_weight=100 50\ninternal_count=" + internal_count + "\n" + more +
         "\n\n";
}

std::string SmallLightgbm::text() const {
  std::string blocks;
  std::string sizes;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const std::string block = trees[i].text(i);
    blocks += block;
    sizes += (i == 0 ? "" : " ") + std::to_string(block.size());
  }
  return "tree\nversion=" + version + "\nnum_class=" + num_class +
         "\nnum_tree_per_iteration=" + num_tree_per_iteration +
         "\nlabel_index=0\nmax_feature_idx=" + max_feature_idx + "\n" + objective + average_output +
         "feature_names=" + feature_names + "\nfeature_infos=" + feature_infos + "\n" +
         (tree_sizes ? "tree_sizes=" + sizes + "\n" : "") + "\n" + blocks +
         "end of trees\n\nfeature_importances:\nage=2\n\nparameters:\n[boosting: gbdt]\n";
}

}  // namespace forestvm::test
