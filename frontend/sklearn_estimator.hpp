// Makes a Model of a fitted scikit-learn estimator. In: its attributes, from a file or from memory. Out: the model
// whose numbers are the estimator's own with n_jobs=1. One row in sklearn_estimators.def says which function reads an
// estimator.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <forestvm/load.hpp>

#include "frontend/parsed_model.hpp"
#include "frontend/python_objects.hpp"
#include "frontend/sklearn_tree.hpp"

namespace forestvm::frontend {

/// Reads the estimator, or the last step of a Pipeline whose other steps change nothing.
Result<ParsedModel> read_sklearn_estimator(const PythonObjects& objects, PythonObjects::Id id,
                                           const LoadLimits& limits);

/// A release of scikit-learn. Several formulas changed between releases.
struct SklearnVersion {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const SklearnVersion&) const = default;
};

/// An estimator that is being read, and the model that it becomes.
class SklearnReader {
 public:
  SklearnReader(const PythonRef& read, SklearnVersion written_by, const LoadLimits& most, ParsedModel& into)
      : estimator(read), version(written_by), limits(most), parsed(into), model(into.model) {}

  const PythonRef estimator;
  const SklearnVersion version;
  const LoadLimits& limits;
  ParsedModel& parsed;
  Model& model;

  bool is_classifier() const { return estimator.type().ends_with("Classifier"); }
  /// Reads the names of features and their number.
  Result<void> read_features();
  /// Returns the labels of the classes of each output.
  Result<std::vector<std::vector<std::string>>> classes() const;
  /// Returns the fitted trees of an ensemble that has a single list of trees.
  Result<std::vector<PythonRef>> trees() const;
  /// Returns, for each of `trees` bagged trees, the list of the features that it sees; features_of reads one list.
  Result<std::vector<PythonRef>> feature_lists(std::size_t trees) const;
  /// Returns the model's feature for each of a bagged tree's own features 0, 1, ...
  Result<std::vector<std::int64_t>> features_of(const PythonRef& list) const;
  /// Sets Model::num_outputs and the base.
  Result<void> set_outputs(std::size_t outputs, std::vector<double> base = {});
  /// Refuses a tree beyond the limits, and one whose leaves would take far more memory than the file.
  Result<void> check_size(const SklearnTree& tree, std::uint32_t width);
  void add(Tree tree) { model.trees.push_back(std::move(tree)); }
  /// Sets the rounds once all trees are added: each round has `trees` trees. The list `name` in the file holds the
  /// trees or, if `nested`, a list of trees for each round.
  void set_rounds(std::uint32_t trees, const char* name, bool nested);
  /// Refuses a tree of `nodes` nodes beyond the limits.
  Result<void> count_nodes(std::size_t nodes);

 private:
  std::uint64_t nodes_ = 0, leaf_values_ = 0, file_values_ = 0;
};

// One function for each kind of ensemble: see sklearn_estimators.def.
Result<void> read_sklearn_single_tree(SklearnReader& reader);
Result<void> read_sklearn_forest(SklearnReader& reader);
Result<void> read_sklearn_embedding(SklearnReader& reader);
Result<void> read_sklearn_bagging(SklearnReader& reader);
Result<void> read_sklearn_isolation_forest(SklearnReader& reader);
Result<void> read_sklearn_ada_boost(SklearnReader& reader);
Result<void> read_sklearn_ada_boost_regressor(SklearnReader& reader);
Result<void> read_sklearn_gradient_boosting(SklearnReader& reader);
Result<void> read_sklearn_hist_gradient_boosting(SklearnReader& reader);

}  // namespace forestvm::frontend
