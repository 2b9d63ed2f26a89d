// A PMML document, read: its trees as splits of two sides, and what is made of their scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <forestvm/load.hpp>
#include <forestvm/model.hpp>

#include "pmml_fields.hpp"
#include "pmml_tree_reader.hpp"

namespace forestvm::frontend {

/// The ways in which the scores of a MiningModel's trees are put together.
enum class PmmlMethod : std::uint8_t {
  Single,  ///< A TreeModel.
  Sum,
  WeightedSum,
  Average,
  WeightedAverage,
  Vote,
  WeightedVote,
  Chain,  ///< The scores are inputs of the last model.
};

/// A field of a model's Output. The expression is written with the function's name first: "(/ score 7.5)".
struct PmmlOutput {
  std::string name, type, feature, expression;
};

/// A TreeModel, or a MiningModel of TreeModels.
struct PmmlScorer {
  std::string where;
  PmmlMethod method = PmmlMethod::Single;
  bool has_classes = false;
  bool is_float = false;  ///< Sums are in float32.
  std::uint32_t first_tree = 0, end_tree = 0;
  double weight_sum = 0;
  bool whole_weights = true;  ///< Weights are small whole numbers.
  bool may_lack_answers = false;
  double factor = 1, constant = 0;  ///< Target: the score's factor, and what is added then.
  bool has_target = false;          ///< There is a Target.
  std::string target;               ///< Name of the target field that the model itself lists; may be empty.
  std::vector<PmmlOutput> outputs;
  bool skips_missing = false;  ///< Trees without an answer do not count.
};

struct PmmlTerm {
  std::string name;
  double coefficient = 0;
};

struct PmmlTable {
  std::string category;
  double intercept = 0;
  std::vector<PmmlTerm> terms;
};

/// A RegressionModel, the last model of a chain.
struct PmmlRegression {
  std::string where;
  bool has_classes = false;
  bool is_float = false;
  std::string normalization;
  std::vector<PmmlTable> tables;
};

struct PmmlDocument {
  explicit PmmlDocument(const LoadLimits& limits) : fields(limits) {}

  std::string application, version, algorithm;
  PmmlFields fields;
  PmmlClasses classes;
  PmmlScorer outermost;             ///< The model that the document holds.
  std::vector<PmmlScorer> scorers;  ///< The outermost model, or the models of its chain.
  std::optional<PmmlRegression> regression;
  std::vector<Tree> trees;         ///< Their splits test fields by their numbers in `fields`.
  std::vector<std::size_t> lines;  ///< Line of each tree.
};

/// Reads the document. `limits` must outlive the result.
Result<PmmlDocument> read_pmml_document(std::span<const std::byte> bytes, const LoadLimits& limits);

}  // namespace forestvm::frontend
