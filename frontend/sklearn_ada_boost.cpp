// Reads AdaBoost. AdaBoostRegressor predicts the weighted median of the trees' values. The first half of the model's
// outputs are the trees' values; the second half are the trees' weights, which stand in the base.
//
// AdaBoostClassifier: each tree votes with its weight (SAMME), or with the logarithms of its probabilities (SAMME.R,
// until 1.5). The decision of a class is the sum of its votes divided by the sum of the weights. Probabilities are the
// softmax of the decisions divided by (number of classes - 1).
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/sklearn_estimator.hpp"
#include "frontend/sklearn_probabilities.hpp"

namespace forestvm::frontend {
namespace {

class VoteReader {
 public:
  VoteReader(SklearnReader& reader, std::vector<std::string> labels)
      : reader_(reader), labels_(std::move(labels)) {
    for (std::size_t k = 0; k < labels_.size(); ++k) numbers_.emplace(labels_[k], k);
  }

  Result<void> add_tree(const PythonRef& estimator, double weight, bool by_logarithms);

 private:
  Result<std::vector<std::size_t>> classes_of(const PythonRef& estimator, std::size_t count) const;
  void vote(std::size_t chosen, double weight, std::span<double> out) const;
  static void vote_by_logarithms(std::span<double> out);

  SklearnReader& reader_;
  std::vector<std::string> labels_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

/// Returns, for each of a tree's own classes, its number among the ensemble's classes.
Result<std::vector<std::size_t>> VoteReader::classes_of(const PythonRef& estimator, std::size_t count) const {
  FVM_ASSIGN(const PythonRef own, estimator.get("classes_"));
  FVM_ASSIGN(const std::vector<std::string> labels, own.texts(labels_.size()));
  if (labels.size() != count) return own.error(formatted("{} classes instead of {}", labels.size(), count));
  std::vector<std::size_t> numbers;
  for (const std::string& label : labels) {
    const auto found = numbers_.find(label);
    if (found == numbers_.end())
      return own.error(formatted("the class {} is not one of the ensemble's", in_quotes(label, 40)));
    numbers.push_back(found->second);
  }
  return numbers;
}

/// Gives the weight to the class that a leaf predicts. From 1.3.1 on, the other classes get equal negative votes whose
/// sum is minus the weight.
void VoteReader::vote(std::size_t chosen, double weight, std::span<double> out) const {
  const bool symmetric = reader_.version >= SklearnVersion{1, 3, 1};
  const double other = symmetric ? -1.0 / (static_cast<double>(out.size()) - 1.0) * weight : 0.0;
  std::fill(out.begin(), out.end(), other);
  out[chosen] = weight;
}

/// Replaces probabilities by votes, after Zhu et al., "Multi-class AdaBoost", algorithm 4, as scikit-learn computes
/// them.
void VoteReader::vote_by_logarithms(std::span<double> out) {
  const auto count = static_cast<double>(out.size());
  for (double& x : out) x = std::log(std::max(x, std::numeric_limits<double>::epsilon()));
  const double mean = 1.0 / count * numpy_sum(out);
  for (double& x : out) x = (count - 1.0) * (x - mean);
}

Result<void> VoteReader::add_tree(const PythonRef& estimator, double weight, bool by_logarithms) {
  const auto width = static_cast<std::uint32_t>(labels_.size());
  FVM_ASSIGN(const SklearnTree tree, SklearnTree::read(estimator));
  FVM_TRY(reader_.check_size(tree, width));
  FVM_ASSIGN(const std::vector<std::size_t> known, classes_of(estimator, tree.classes()));
  const SklearnProbabilities probabilities({known.size()}, reader_.version);
  FVM_TRY(probabilities.check(tree, estimator));
  if (by_logarithms && known.size() != width)
    return estimator.error(formatted("SAMME.R with a tree of {} classes instead of {}", known.size(), width));
  const auto fill = [&](std::size_t node, std::span<double> out) {
    if (by_logarithms) {
      probabilities.fill(tree, node, out);
      return vote_by_logarithms(out);
    }
    std::size_t chosen = 0;
    for (std::size_t k = 1; k < known.size(); ++k)
      if (tree.value(node, 0, k) > tree.value(node, 0, chosen)) chosen = k;
    vote(known[chosen], weight, out);
  };
  FVM_ASSIGN(Tree made, tree.tree({}, reader_.model.num_features, width, fill));
  reader_.add(std::move(made));
  return {};
}

/// Returns the weights of the trees. The file's list may be longer, for trees that training did not make.
Result<std::vector<double>> weights_of(const SklearnReader& reader, std::size_t trees) {
  FVM_ASSIGN(const PythonRef list, reader.estimator.get("estimator_weights_"));
  FVM_ASSIGN(std::vector<double> weights, list.numbers(reader.limits.max_trees));
  if (weights.size() < trees) return list.error(formatted("{} weights for {} trees", weights.size(), trees));
  return weights;
}

}  // namespace

Result<void> read_sklearn_ada_boost_regressor(SklearnReader& reader) {
  FVM_ASSIGN(const std::vector<PythonRef> trees, reader.trees());
  FVM_ASSIGN(const std::vector<double> weights, weights_of(reader, trees.size()));
  std::vector<double> base(trees.size());
  base.insert(base.end(), weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(trees.size()));
  FVM_TRY(reader.set_outputs(base.size(), base));
  for (std::size_t i = 0; i < trees.size(); ++i) {
    FVM_ASSIGN(const SklearnTree tree, SklearnTree::read(trees[i]));
    if (tree.outputs() != 1 || tree.classes() != 1)
      return trees[i].error(formatted("a tree of {} outputs and {} values each instead of 1 and 1",
                                      tree.outputs(), tree.classes()));
    FVM_TRY(reader.check_size(tree, 1));
    FVM_ASSIGN(Tree made,
               tree.tree({}, reader.model.num_features, 1,
                         [&](std::size_t node, std::span<double> out) { out[0] = tree.value(node, 0, 0); }));
    made.output = static_cast<std::uint32_t>(i);
    reader.add(std::move(made));
  }
  reader.model.transform = Transform::WeightedMedian;
  reader.set_rounds(static_cast<std::uint32_t>(trees.size()), "estimators_", false);
  return {};
}

Result<void> read_sklearn_ada_boost(SklearnReader& reader) {
  Model& model = reader.model;
  const PythonRef& ensemble = reader.estimator;
  FVM_ASSIGN(const std::vector<PythonRef> trees, reader.trees());
  FVM_ASSIGN(std::vector<std::vector<std::string>> classes, reader.classes());
  if (classes.size() != 1 || classes[0].size() < 2)
    return ensemble.error("an AdaBoostClassifier of one class predicts nothing");
  std::string algorithm = "SAMME";
  if (const auto given = ensemble.find("algorithm"); given && reader.version < SklearnVersion{1, 6, 0}) {
    FVM_ASSIGN(algorithm, given->text());
    if (algorithm != "SAMME" && algorithm != "SAMME.R")
      return given->error("unknown algorithm " + in_quotes(algorithm, 40));
  }
  FVM_ASSIGN(const std::vector<double> weights, weights_of(reader, trees.size()));

  FVM_TRY(reader.set_outputs(classes[0].size()));
  model.class_labels = classes[0];
  VoteReader votes(reader, std::move(classes[0]));
  for (std::size_t i = 0; i < trees.size(); ++i)
    FVM_TRY(votes.add_tree(trees[i], weights[i], algorithm == "SAMME.R"));
  model.divisor = numpy_sum(weights);
  model.slope = static_cast<double>(model.num_outputs) - 1.0;
  model.transform = Transform::Softmax;
  model.class_rule = ClassRule::RawArgmax;
  reader.set_rounds(1, "estimators_", false);
  return {};
}

}  // namespace forestvm::frontend
