// Reads single trees, random forests and bagging, which average the trees' probabilities or values.
#include <algorithm>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "frontend/sklearn_estimator.hpp"
#include "frontend/sklearn_probabilities.hpp"

namespace forestvm::frontend {
namespace {

/// Takes the trees of an ensemble one after the other.
class ForestReader {
 public:
  explicit ForestReader(SklearnReader& reader) : reader_(reader) {}

  Result<void> begin();
  Result<void> add_tree(const PythonRef& estimator, std::span<const std::int64_t> features);
  void end(bool averaged);

 private:
  Result<void> add_regression_tree(const SklearnTree& tree, const PythonRef& estimator,
                                   std::span<const std::int64_t> features);
  Result<void> add_classes_of(const SklearnTree& tree, const PythonRef& estimator,
                              std::span<const std::int64_t> features);

  SklearnReader& reader_;
  std::vector<std::vector<std::string>> classes_;  ///< Labels for each output; none in regression.
};

Result<void> ForestReader::begin() {
  if (!reader_.is_classifier()) return {};
  FVM_ASSIGN(classes_, reader_.classes());
  std::size_t width = 0;
  for (const std::vector<std::string>& labels : classes_) width += labels.size();
  FVM_TRY(reader_.set_outputs(width));
  Model& model = reader_.model;
  if (classes_.size() == 1) {
    model.class_rule = ClassRule::Argmax;
  } else if (width <= kMaxGroupedOutputs) {
    model.class_rule = ClassRule::ArgmaxOfEach;
  } else {
    return {};
  }
  std::vector<std::string>& labels = model.class_labels;
  for (const std::vector<std::string>& own : classes_) {
    labels.insert(labels.end(), own.begin(), own.end());
    if (classes_.size() > 1) model.group_ends |= std::uint64_t{1} << (labels.size() - 1);
  }
  return {};
}

Result<void> ForestReader::add_regression_tree(const SklearnTree& tree, const PythonRef& estimator,
                                               std::span<const std::int64_t> features) {
  if (reader_.model.trees.empty()) FVM_TRY(reader_.set_outputs(tree.outputs()));
  if (tree.classes() != 1 || tree.outputs() != reader_.model.num_outputs)
    return estimator.error(formatted("a tree of {} outputs and {} values each instead of {} and 1",
                                     tree.outputs(), tree.classes(), reader_.model.num_outputs));
  FVM_TRY(reader_.check_size(tree, reader_.model.num_outputs));
  FVM_ASSIGN(Tree made, tree.tree(features, reader_.model.num_features, reader_.model.num_outputs,
                                  [&](std::size_t node, std::span<double> out) {
                                    for (std::size_t k = 0; k < out.size(); ++k)
                                      out[k] = tree.value(node, k, 0);
                                  }));
  reader_.add(std::move(made));
  return {};
}

/// Adds a classification tree. The training rows of a bagged tree may lack some of the ensemble's classes. The tree's
/// own list of classes then holds their numbers in the ensemble.
Result<void> ForestReader::add_classes_of(const SklearnTree& tree, const PythonRef& estimator,
                                          std::span<const std::int64_t> features) {
  const std::uint32_t width = reader_.model.num_outputs;
  std::vector<std::size_t> sizes;
  for (const std::vector<std::string>& labels : classes_) sizes.push_back(labels.size());
  std::vector<std::int64_t> known;
  if (sizes.size() == 1 && tree.classes() < width) {
    FVM_ASSIGN(const PythonRef own, estimator.get("classes_"));
    FVM_ASSIGN(known, own.integers(width));
    const bool inside = std::all_of(known.begin(), known.end(),
                                    [&](std::int64_t k) { return k >= 0 && k < std::int64_t{width}; });
    if (!inside || known.size() != tree.classes())
      return own.error(formatted("not {} of the ensemble's classes", tree.classes()));
    sizes[0] = known.size();
  }
  const SklearnProbabilities probabilities(sizes, reader_.version);
  FVM_TRY(probabilities.check(tree, estimator));
  FVM_TRY(reader_.check_size(tree, width));
  std::vector<double> own(known.size());
  const auto fill = [&](std::size_t node, std::span<double> out) {
    if (known.empty()) return probabilities.fill(tree, node, out);
    probabilities.fill(tree, node, own);
    std::fill(out.begin(), out.end(), 0.0);
    for (std::size_t k = 0; k < own.size(); ++k) out[static_cast<std::size_t>(known[k])] += own[k];
  };
  FVM_ASSIGN(Tree made, tree.tree(features, reader_.model.num_features, width, fill));
  reader_.add(std::move(made));
  return {};
}

Result<void> ForestReader::add_tree(const PythonRef& estimator, std::span<const std::int64_t> features) {
  FVM_ASSIGN(const SklearnTree tree, SklearnTree::read(estimator));
  return classes_.empty() ? add_regression_tree(tree, estimator, features)
                          : add_classes_of(tree, estimator, features);
}

void ForestReader::end(bool averaged) {
  reader_.model.averaged = averaged;
  reader_.model.transform = averaged ? Transform::Average : Transform::Identity;
  reader_.set_rounds(1, "estimators_", false);
}

}  // namespace

Result<void> read_sklearn_single_tree(SklearnReader& reader) {
  ForestReader forest(reader);
  FVM_TRY(forest.begin());
  FVM_TRY(forest.add_tree(reader.estimator, {}));
  forest.end(false);
  reader.parsed.tree_location = [place = reader.estimator.place()](std::size_t) { return place + ": tree_"; };
  return {};
}

Result<void> read_sklearn_forest(SklearnReader& reader) {
  FVM_ASSIGN(const std::vector<PythonRef> trees, reader.trees());
  ForestReader forest(reader);
  FVM_TRY(forest.begin());
  for (const PythonRef& tree : trees) FVM_TRY(forest.add_tree(tree, {}));
  forest.end(true);
  return {};
}

/// Reads a RandomTreesEmbedding, which predicts numbers of leaves only: its trees were fitted to random targets, so
/// their values mean nothing.
Result<void> read_sklearn_embedding(SklearnReader& reader) {
  FVM_ASSIGN(const std::vector<PythonRef> trees, reader.trees());
  FVM_TRY(reader.set_outputs(1));
  for (const PythonRef& estimator : trees) {
    FVM_ASSIGN(const SklearnTree tree, SklearnTree::read(estimator));
    FVM_TRY(reader.check_size(tree, 1));
    FVM_ASSIGN(Tree made, tree.tree({}, reader.model.num_features, 1,
                                    [](std::size_t, std::span<double> out) { out[0] = 0; }));
    reader.add(std::move(made));
  }
  reader.set_rounds(1, "estimators_", false);
  return {};
}

Result<void> read_sklearn_bagging(SklearnReader& reader) {
  FVM_ASSIGN(const std::vector<PythonRef> trees, reader.trees());
  FVM_ASSIGN(const PythonRef count, reader.estimator.get("n_estimators"));
  FVM_TRY(count.integer(static_cast<std::int64_t>(trees.size()), static_cast<std::int64_t>(trees.size())));
  FVM_ASSIGN(const std::vector<PythonRef> lists, reader.feature_lists(trees.size()));
  ForestReader forest(reader);
  FVM_TRY(forest.begin());
  for (std::size_t i = 0; i < trees.size(); ++i) {
    FVM_ASSIGN(const std::vector<std::int64_t> features, reader.features_of(lists[i]));
    FVM_TRY(forest.add_tree(trees[i], features));
  }
  forest.end(true);
  return {};
}

}  // namespace forestvm::frontend
