// The reference predictor: the slowest and most obvious one, against which every other path is tested. In: a
// Model and rows. Out: raw scores, leaf numbers, values, labels. It shares no code with the VM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

struct ReferenceOptions {
  std::size_t first_tree = 0;
  /// Number of the tree after the last one; larger numbers count as the model's number of trees.
  std::size_t last_tree = std::numeric_limits<std::size_t>::max();
  bool leaves = true;  ///< True if Reference::leaf is filled.
  /// True if the rows' hashed features hold codes of categories; otherwise whole numbers, which stand for their
  /// decimal text (see Model::hashed_features).
  bool hashed_rows = false;
};

/// Predictions, all row-major. Numbers of a Float32 model are float32 values, held exactly.
struct Reference {
  std::size_t rows = 0;
  std::size_t raw_width = 1;        ///< Raw scores per row: Model::num_outputs.
  std::size_t value_width = 1;      ///< Values per row: see value_width() in core/transform.hpp.
  std::size_t label_width = 0;      ///< Labels per row; 0 if the model has no classes.
  std::size_t leaf_width = 0;       ///< Leaf numbers per row: the number of trees that were asked for.
  std::vector<double> raw;          ///< rows x raw_width sums in tree order, with the base first or last.
  std::vector<double> value;        ///< rows x value_width results of the trainer's predict.
  std::vector<std::int64_t> label;  ///< rows x label_width label indices.
  std::vector<std::int32_t> leaf;   ///< rows x leaf_width numbers of leaves: see leaf_number.
};

/// Predicts row-major `rows` of model.num_features columns. NaN is missing unless a node says otherwise. The
/// model must have passed check_model. Refused: rows of another width.
Result<Reference> reference_predict(const Model& model, std::span<const float> rows, std::size_t row_count,
                                    const ReferenceOptions& options = {});
/// Predicts float64 rows. Their values are rounded to float32 first if the model compares in float32.
Result<Reference> reference_predict(const Model& model, std::span<const double> rows, std::size_t row_count,
                                    const ReferenceOptions& options = {});

/// Returns the exact path-dependent SHAP contributions of the features to the raw scores of row-major `rows`,
/// computed leaf by leaf in long double. They are rows x num_outputs x (num_features + 1) numbers, the last of each
/// output the expected score. The model must have passed check_model. Refused: rows of another width; columns that
/// are derived from several features; linear leaves.
Result<std::vector<double>> reference_contributions(const Model& model, std::span<const double> rows,
                                                    std::size_t row_count,
                                                    const ReferenceOptions& options = {});

/// Returns the contributions of features against a background (interventional SHAP values): the means over its rows,
/// computed leaf by leaf in long double. Refused for the models that reference_contributions refuses, and for a
/// background without rows.
Result<std::vector<double>> reference_contributions_against(const Model& model, std::span<const double> rows,
                                                            std::span<const double> background,
                                                            const ReferenceOptions& options = {});

/// Returns the SHAP interactions of each two features, computed leaf by leaf in long double: rows x num_outputs x
/// (num_features + 1) x (num_features + 1) numbers, symmetric. The sums of a matrix's rows are the contributions;
/// its last number is the expected score. Refused for the models that reference_contributions refuses.
Result<std::vector<double>> reference_interactions(const Model& model, std::span<const double> rows,
                                                   std::size_t row_count,
                                                   const ReferenceOptions& options = {});

}  // namespace forestvm
