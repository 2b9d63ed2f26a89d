// One tree of a LightGBM JSON dump: its nodes in the order of the document -> Tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// The fields that few nodes of a dump have.
struct LightgbmDumpExtras {
  std::optional<std::string> categories;  ///< a categorical split's threshold: "0||3||7"
  std::optional<double> leaf_const;       ///< a linear leaf's function
  std::vector<std::int64_t> leaf_features;
  std::vector<double> leaf_coeff;
};

/// A node's members. A split has split_index; a leaf has leaf_index, unless it is the whole tree.
struct LightgbmDumpNode {
  std::optional<std::int64_t> split_index, leaf_index, split_feature;
  std::optional<double> threshold, leaf_value;
  std::unique_ptr<LightgbmDumpExtras> extras;            ///< null: none of them
  float count = 0;                                       ///< training rows that reached the node
  float gain = std::numeric_limits<float>::quiet_NaN();  ///< a split's gain, if the dump says it
  std::int32_t left = -1, right = -1;  ///< numbers of the children in the list of nodes; -1: none
  NodeKind kind = NodeKind::Leaf;      ///< LessEqual or Category, by decision_type
  std::optional<bool> default_left;
  std::optional<Missing> missing;
};

/// Makes the tree; the first node is the root. `where` is the tree's place for errors.
/// The dump writes 1e300 for all larger thresholds. `largest` has the largest training value of each feature (infinity
/// where the file does not say it), which tells a threshold of 1e300 from an infinite one.
Result<Tree> tree_of(const std::vector<LightgbmDumpNode>& nodes, const std::vector<double>& largest,
                     const std::string& where);

}  // namespace forestvm::frontend
