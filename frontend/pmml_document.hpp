// Reads a PMML document: its fields, its trees, of which it makes two-way splits, and how their scores are combined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <forestvm/load.hpp>
#include <forestvm/model.hpp>

#include "frontend/pmml_fields.hpp"
#include "frontend/pmml_tree_reader.hpp"

namespace forestvm::frontend {

/// The ways in which a model combines the scores of its trees.
enum class PmmlMethod : std::uint8_t {
  Single,  ///< A TreeModel, which has one tree.
  Sum,
  WeightedSum,
  Average,
  WeightedAverage,
  Vote,
  WeightedVote,
  Chain,  ///< The scores are inputs of the last model.
};

/// A field of a model's Output. In its expression, the name of a function stands before the arguments, as in "(/ score
/// 7.5)".
struct PmmlOutput {
  std::string name, type, feature, expression;
};

/// A TreeModel, or a MiningModel of TreeModels.
struct PmmlScorer {
  std::string where;  ///< Place in the document, for messages.
  PmmlMethod method = PmmlMethod::Single;
  bool has_classes = false;
  bool is_float = false;  ///< True if scores are summed in float32, otherwise in float64.
  std::uint32_t first_tree = 0, end_tree = 0;  ///< The range of its trees in PmmlDocument::trees.
  double weight_sum = 0;          ///< Sum of the weights of its segments, in the type of the sums.
  bool whole_weights = true;      ///< True if all weights are whole numbers below 4096.
  bool may_lack_answers = false;  ///< See Model::may_lack_answers.
  double factor = 1,
         constant = 0;      ///< Target: the score is multiplied by `factor`; then `constant` is added.
  bool has_target = false;  ///< True if there is a Target.
  std::string target;       ///< Name of the target field in the model's own MiningSchema; may be empty.
  std::vector<PmmlOutput> outputs;
  bool skips_missing = false;  ///< True if trees without an answer are left out of the sum.
};

/// A NumericPredictor: a field and its coefficient.
struct PmmlTerm {
  std::string name;
  double coefficient = 0;
};

/// A RegressionTable, for one class of a classification.
struct PmmlTable {
  std::string category;
  double intercept = 0;
  std::vector<PmmlTerm> terms;
};

/// A RegressionModel, which is the last model of a chain.
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
  std::vector<Tree> trees;         ///< Trees whose splits test fields by their numbers in `fields`.
  std::vector<std::size_t> lines;  ///< Line of the document in which each tree begins, from 1.
};

/// Reads the document. `limits` must outlive the result. Refuses, with line and element, a document that is damaged,
/// that goes beyond the limits, or that means something a Model cannot express.
Result<PmmlDocument> read_pmml_document(std::span<const std::byte> bytes, const LoadLimits& limits);

}  // namespace forestvm::frontend
