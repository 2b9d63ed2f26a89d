// The paths of a model under compilation, from which contributions and interactions of features are computed, and what
// leaves attribute to features.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/core/attributions.hpp>
#include <forestvm/core/path_data.hpp>
#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::scheduler {

/// The node of the model whose test a split of a path makes.
struct PathSource {
  std::uint32_t tree;
  std::uint32_t node;
  /// True if the split has only its column: it stands before the one that makes the test, because the covers of two
  /// children do not add up to their parent's.
  bool keeps;
};

struct ExplainedForest {
  std::vector<ExplainedTree> trees;
  std::vector<PathNode> nodes;      ///< Columns and codes are still zero.
  std::vector<PathSource> sources;  ///< One for each of `nodes`.
};

/// The leaves of a model under compilation, and what they attribute to features: see core/attributions.hpp.
struct AttributedForest {
  std::vector<AttributedTree> trees;
  std::vector<std::uint32_t> leaves;
  std::vector<Attribution> attributions;
  std::vector<double> base;
};

/// Refuses models of which no contributions are computed, whatever their trees are.
Result<void> check_contributions(const Model& model);

/// Returns the feature from which each derived column is computed; UINT32_MAX for columns of several features.
std::vector<std::uint32_t> sources_of_columns(const Model& model);

/// Returns a symmetric tree of CatBoost with its last split as the root, as CatBoost explains it, and in `sources` the
/// node of the model for each of its nodes. Other trees are returned as they are.
Tree rooted_for_contributions(const Model& model, const Tree& tree, std::vector<std::uint32_t>& sources);

}  // namespace forestvm::scheduler
