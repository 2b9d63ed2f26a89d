// The paths and the attributions of a model under compilation, from which contributions and interactions of features
// are computed.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/core/attributions.hpp>
#include <forestvm/core/leaf_lists.hpp>
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

/// A split on the way to a leaf whose contributions are looked up: see PatternLeaf.
struct PatternStep {
  PathSource source;
  std::uint32_t feature;
  std::uint8_t bit;  ///< PatternTest::bit
  bool left;         ///< True if the way goes left.
};

struct ExplainedForest {
  std::vector<PatternLeaf> leaves;  ///< Their tests are still steps.
  std::vector<PatternStep> steps;
  std::vector<double> numbers;  ///< ProgramParts::pattern_numbers
  std::vector<ExplainedTree> trees;
  std::vector<PathNode> nodes;      ///< Columns and codes are still zero.
  std::vector<PathSource> sources;  ///< One for each of `nodes`.
};

/// The attributions of a model under compilation: see core/attributions.hpp.
struct AttributedForest {
  std::vector<NumberedLeaves> trees;
  std::vector<std::uint32_t> leaves;
  std::vector<Attribution> attributions;
  std::vector<double> base;
};

/// Returns the outputs of a program that are computed from its paths.
std::vector<OutputKind> explained_outputs(const CompileOptions& options);

/// Refuses models of which no contributions are computed, whatever their trees are.
Result<void> check_contributions(const Model& model);

}  // namespace forestvm::scheduler
