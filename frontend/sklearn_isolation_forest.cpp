// Reads IsolationForest. A leaf's output is its depth plus c(n), the expected depth of a further tree over the n
// training rows in the leaf. The decision is -(2 ^ (-mean / c(samples))) - offset, where `mean` is the average of the
// trees' outputs.
#include <cmath>
#include <optional>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "frontend/sklearn_estimator.hpp"

namespace forestvm::frontend {
namespace {

/// Returns c(n), the average length of an unsuccessful search in a binary search tree of n keys.
double average_path(std::int64_t n) {
  constexpr double euler_gamma = 0.5772156649015328606;
  if (n <= 1) return 0;
  if (n == 2) return 1;
  const auto count = static_cast<double>(n);
  return 2.0 * (std::log(count - 1.0) + euler_gamma) - 2.0 * (count - 1.0) / count;
}

/// The lists in which releases from 1.3 on store, for each tree and node, the length of the way to the node and c(rows
/// of the node).
struct StoredPaths {
  std::vector<PythonRef> lengths, averages;
};

Result<std::optional<StoredPaths>> stored_paths(const SklearnReader& reader, std::size_t trees) {
  const auto lengths = reader.estimator.find("_decision_path_lengths");
  const auto averages = reader.estimator.find("_average_path_length_per_tree");
  if (!lengths || !averages) return std::optional<StoredPaths>();
  StoredPaths stored;
  FVM_ASSIGN(stored.lengths, lengths->items());
  FVM_ASSIGN(stored.averages, averages->items());
  if (stored.lengths.size() != trees || stored.averages.size() != trees)
    return lengths->error(formatted("lengths of {} and averages of {} trees instead of {}",
                                    stored.lengths.size(), stored.averages.size(), trees));
  return std::optional(std::move(stored));
}

/// The length of the way to each node of a tree, and c(rows of the node).
struct Paths {
  std::vector<std::int64_t> lengths;
  std::vector<double> averages;
};

Result<Paths> paths_of(const SklearnTree& tree, const std::optional<StoredPaths>& stored,
                       std::size_t number) {
  Paths paths;
  if (!stored) {
    FVM_ASSIGN(paths.lengths, tree.path_lengths());
    for (std::size_t i = 0; i < tree.size(); ++i) paths.averages.push_back(average_path(tree.samples(i)));
    return paths;
  }
  FVM_ASSIGN(paths.lengths, stored->lengths[number].integers(tree.size()));
  FVM_ASSIGN(paths.averages, stored->averages[number].numbers(tree.size()));
  if (paths.lengths.size() != tree.size() || paths.averages.size() != tree.size())
    return stored->lengths[number].error(
        formatted("not a length and an average for each of {} nodes", tree.size()));
  return paths;
}

}  // namespace

Result<void> read_sklearn_isolation_forest(SklearnReader& reader) {
  Model& model = reader.model;
  const PythonRef& forest = reader.estimator;
  FVM_ASSIGN(const std::vector<PythonRef> trees, reader.trees());
  const bool old = reader.version < SklearnVersion{1, 3, 0};
  FVM_ASSIGN(const PythonRef samples_ref, forest.get(old ? "max_samples_" : "_max_samples"));
  FVM_ASSIGN(const std::int64_t samples, samples_ref.integer(1, std::int64_t{1} << 53));
  if (samples == 1) return samples_ref.error("trees of one row each, which tell no rows apart");
  FVM_ASSIGN(const PythonRef offset, forest.get("offset_"));
  FVM_ASSIGN(model.offset, offset.number());
  FVM_ASSIGN(const PythonRef seen_ref, forest.get("_max_features"));
  FVM_ASSIGN(const std::int64_t seen, seen_ref.integer(1, reader.limits.max_features));
  FVM_ASSIGN(const std::vector<PythonRef> lists, reader.feature_lists(trees.size()));
  FVM_ASSIGN(const std::optional<StoredPaths> stored, stored_paths(reader, trees.size()));

  FVM_TRY(reader.set_outputs(1));
  double average = average_path(samples);
  for (std::size_t i = 0; i < trees.size(); ++i) {
    FVM_ASSIGN(const SklearnTree tree, SklearnTree::read(trees[i]));
    FVM_TRY(reader.check_size(tree, 1));
    FVM_ASSIGN(const Paths paths, paths_of(tree, stored, i));
    // scikit-learn's logarithm may differ from this one in the last place, so its value is taken from a root with all
    // samples, which stores it.
    if (stored && tree.samples(0) == samples) average = paths.averages[0];
    std::vector<std::int64_t> features;
    if (seen != std::int64_t{model.num_features}) {
      FVM_ASSIGN(features, reader.features_of(lists[i]));
    }
    FVM_ASSIGN(Tree made,
               tree.tree(features, model.num_features, 1, [&](std::size_t node, std::span<double> out) {
                 out[0] = static_cast<double>(paths.lengths[node]) + paths.averages[node] - 1.0;
               }));
    reader.add(std::move(made));
  }
  model.divisor = static_cast<double>(trees.size()) * average;
  model.transform = Transform::AnomalyDecision;
  model.class_rule = ClassRule::Negative;
  model.class_labels = {"1", "-1"};
  reader.set_rounds(1, "estimators_", false);
  return {};
}

}  // namespace forestvm::frontend
