// Makes a Tree of a tree in LightGBM's JSON dump, whose nodes come in the order of the document.
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
  /// Constant of a linear leaf's function; its features and coefficients follow.
  std::optional<double> leaf_const;
  std::vector<std::int64_t> leaf_features;
  std::vector<double> leaf_coeff;
};

/// A node's members. A split has split_index; a leaf has leaf_index, unless it is the whole tree.
struct LightgbmDumpNode {
  std::optional<std::int64_t> split_index, leaf_index, split_feature;
  std::optional<double> threshold, leaf_value;
  std::unique_ptr<LightgbmDumpExtras> extras;  ///< Null if the node has none of them.
  float count = 0;                             ///< Training rows that reached the node.
  /// Gain of a split; NaN if the dump does not say it.
  float gain = std::numeric_limits<float>::quiet_NaN();
  std::int32_t left = -1, right = -1;  ///< Numbers of the children in the list of nodes; -1: none.
  NodeKind kind = NodeKind::Leaf;      ///< Leaf, or by decision_type LessEqual or Category.
  std::optional<bool> default_left;
  std::optional<Missing> missing;
};

/// Makes the tree; the first node is the root. `where` is the tree's place for errors.
/// The dump writes 1e300 for all larger thresholds. `largest` has the largest training value of each feature (infinity
/// where the file does not say it), which tells a threshold of 1e300 from an infinite one.
Result<Tree> tree_of(const std::vector<LightgbmDumpNode>& nodes, const std::vector<double>& largest,
                     const std::string& where);

}  // namespace forestvm::frontend
