// Computes the numbers that forestvm explain shows of a model and its rows. It takes one pass over the rows, and keeps
// a batch, a sample of bounded size and the rows of --row in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/model.hpp>
#include <forestvm/partial_dependence.hpp>
#include <forestvm/result.hpp>

#include "cli/batches.hpp"

namespace forestvm::cli {

/// The options of the command line that say what is explained.
struct ExplainOptions {
  std::string model;
  BatchOptions rows;
  BackendOptions backend;
  std::uint32_t output = 0;  ///< The raw score that is explained.
  std::size_t sample = 1000;
  std::size_t shown = 20;                  ///< Most features that drawings show.
  std::vector<std::uint64_t> chosen{0};    ///< Numbers of the rows that get a waterfall.
  std::optional<std::uint32_t> feature{};  ///< The only feature to show; none: the strongest.
  std::string out = "-";
};

/// A row with its contributions to the raw score.
struct ExplainedRow {
  std::uint64_t number = 0;
  std::vector<double> values{};         ///< One for each feature; NaN is missing.
  std::vector<double> contributions{};  ///< One for each feature, then the expected score.

  double score() const;
};

/// A feature that drawings show.
struct ShownFeature {
  std::uint32_t feature = 0;
  /// The feature with which it interacts most: the one with the largest sum of |interaction| over the sample.
  std::optional<std::uint32_t> partner{};
  std::optional<Dependence> dependence{};
};

struct Explanation {
  std::string model, rows_name, trainer, objective;
  std::string output;              ///< Name of the raw score, if the model has several; otherwise empty.
  std::vector<std::string> names;  ///< Names of the features.
  /// Names of the categories of each feature; empty for features without names for them.
  std::vector<std::vector<std::string>> categories;
  std::vector<bool> hashed;  ///< True for features whose values are hashes of texts.

  std::uint64_t rows = 0;
  double expected = 0;             ///< The expected score.
  double mean = 0;                 ///< The mean raw score of the rows.
  std::vector<double> importance;  ///< Mean |contribution| of each feature.
  std::vector<double> gain;  ///< Sum of the gains of each feature's splits; NaN: the file does not say it.
  std::vector<std::uint64_t> splits;  ///< Splits of each feature in the model.
  std::vector<double> cover;          ///< Sum of the training weights that reached each feature's splits.

  std::vector<ExplainedRow> sample;  ///< Ascending by number.
  std::vector<ExplainedRow> chosen;
  std::vector<ShownFeature> shown;  ///< The largest importance first.
  std::vector<std::string> notes;   ///< Sentences that say what is left out, and why.
};

/// Explains the rows of a file. Refused: encoded rows, a file without rows, chosen rows that it does not have, and
/// models without contributions.
Result<Explanation> explain_rows(const Model& model, const ExplainOptions& options);

}  // namespace forestvm::cli
