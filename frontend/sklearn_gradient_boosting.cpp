// Reads GradientBoosting: sums of learning_rate times the trees' values, which start from the classes' frequencies or
// from a constant.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/sklearn_estimator.hpp"
#include "frontend/sklearn_probabilities.hpp"

namespace forestvm::frontend {
namespace {

constexpr SklearnVersion kNewLosses{1, 4, 0};

enum class BoostingLoss { Values, Logistic, Exponential };

Result<BoostingLoss> loss_of(const SklearnReader& reader) {
  FVM_ASSIGN(const PythonRef given, reader.estimator.get("loss"));
  FVM_ASSIGN(const std::string loss, given.text());
  reader.model.objective += formatted("(loss='{}')", printable(loss, 40));
  if (!reader.is_classifier()) {
    for (const char* known : {"squared_error", "absolute_error", "huber", "quantile", "ls", "lad"})
      if (loss == known) return BoostingLoss::Values;
  } else if (loss == "log_loss" || loss == "deviance") {
    return BoostingLoss::Logistic;
  } else if (loss == "exponential") {
    return BoostingLoss::Exponential;
  }
  return given.error("unknown loss " + in_quotes(loss, 40));
}

/// Returns the logit as SciPy's releases from 1.15 on compute it.
double scipy_logit(double p) {
  if (p < 0.3 || p > 0.65) return std::log(p / (1 - p));
  const double s = 2 * (p - 0.5);
  return std::log1p(s) - std::log1p(-s);
}

/// Returns the raw scores of classes with these frequencies. Releases from 1.4 on divide frequencies by their geometric
/// mean.
std::vector<double> log_priors(std::vector<double> priors, SklearnVersion version) {
  std::vector<double> logs;
  logs.reserve(priors.size());
  for (const double p : priors) logs.push_back(std::log(p));
  if (version < kNewLosses) return logs;
  const double geometric_mean = std::exp(numpy_sum(logs) / static_cast<double>(logs.size()));
  for (std::size_t k = 0; k < priors.size(); ++k) logs[k] = std::log(priors[k] / geometric_mean);
  return logs;
}

/// Returns the raw scores with which sums start, from the frequencies of the classes.
std::vector<double> start_of(std::vector<double> priors, BoostingLoss loss, SklearnVersion version) {
  const double epsilon = version < SklearnVersion{1, 8, 0}
                             ? static_cast<double>(std::numeric_limits<float>::epsilon())
                             : std::numeric_limits<double>::epsilon();
  for (double& p : priors) p = std::clamp(p, epsilon, 1 - epsilon);
  if (priors.size() > 2) return log_priors(std::move(priors), version);
  const double p = priors[1];
  const double start = version < kNewLosses ? std::log(p / (1 - p)) : scipy_logit(p);
  return {loss == BoostingLoss::Exponential ? 0.5 * start : start};
}

/// Reads the start of the sums. Refuses a user's own `init`, whose start depends on the row.
Result<std::vector<double>> read_start(const SklearnReader& reader, BoostingLoss loss, std::size_t classes) {
  const PythonRef& estimator = reader.estimator;
  if (const auto init = estimator.find("init")) {
    const Result<std::string> text = init->kind() == PythonKind::Scalar ? init->text() : Error{};
    if (text.ok() && *text == "zero") return std::vector<double>(classes > 2 ? classes : 1);
    return init->error(formatted("init={}: scores that start from another estimator's are not supported",
                                 printable(init->class_name(), 40)));
  }
  FVM_ASSIGN(const PythonRef start, estimator.get("init_"));
  const bool priors = loss != BoostingLoss::Values;
  if (start.type() != (priors ? "sklearn.dummy.DummyClassifier" : "sklearn.dummy.DummyRegressor"))
    return start.error(formatted("scores that start from {} are not supported", printable(start.type())));
  FVM_ASSIGN(const PythonRef stored, start.get(priors ? "class_prior_" : "constant_"));
  FVM_ASSIGN(std::vector<double> numbers, stored.numbers(reader.limits.max_outputs));
  const std::size_t expected = priors ? classes : 1;
  if (numbers.size() != expected)
    return stored.error(formatted("{} numbers instead of {}", numbers.size(), expected));
  return priors ? start_of(std::move(numbers), loss, reader.version) : numbers;
}

void set_values(SklearnReader& reader, BoostingLoss loss, std::vector<std::string> labels) {
  Model& model = reader.model;
  if (loss == BoostingLoss::Values) return;
  model.class_labels = std::move(labels);
  if (model.num_outputs > 1) {
    model.transform = Transform::Softmax;
    model.class_rule = reader.version < kNewLosses ? ClassRule::Argmax : ClassRule::RawArgmax;
    return;
  }
  model.transform = Transform::Sigmoid;
  model.pair = Pair::Complement;
  model.slope = loss == BoostingLoss::Exponential ? 2 : 1;
  const bool from_values = loss == BoostingLoss::Logistic && reader.version < kNewLosses;
  model.class_rule = from_values ? ClassRule::AboveHalf : ClassRule::RawNotNegative;
}

Result<void> add_tree(SklearnReader& reader, const PythonRef& estimator, double rate, std::size_t output) {
  FVM_ASSIGN(const SklearnTree tree, SklearnTree::read(estimator));
  if (tree.outputs() != 1 || tree.classes() != 1) return estimator.error("a tree of more than one value");
  FVM_TRY(reader.check_size(tree, 1));
  FVM_ASSIGN(Tree made,
             tree.tree({}, reader.model.num_features, 1, [&](std::size_t node, std::span<double> out) {
               out[0] = rate * tree.value(node, 0, 0);
             }));
  made.output = static_cast<std::uint32_t>(output);
  reader.add(std::move(made));
  return {};
}

}  // namespace

Result<void> read_sklearn_gradient_boosting(SklearnReader& reader) {
  const PythonRef& estimator = reader.estimator;
  FVM_ASSIGN(const BoostingLoss loss, loss_of(reader));
  std::vector<std::string> labels;
  if (loss != BoostingLoss::Values) {
    FVM_ASSIGN(std::vector<std::vector<std::string>> classes, reader.classes());
    if (classes.size() != 1 || classes[0].size() < 2)
      return estimator.error("a classifier of less than two classes");
    labels = std::move(classes[0]);
  }
  FVM_ASSIGN(std::vector<double> start, read_start(reader, loss, labels.size()));
  const std::size_t outputs = start.size();
  if (loss == BoostingLoss::Exponential && outputs != 1)
    return estimator.error("loss='exponential' with more than two classes");
  FVM_TRY(reader.set_outputs(outputs, std::move(start)));
  FVM_ASSIGN(const PythonRef rate_ref, estimator.get("learning_rate"));
  FVM_ASSIGN(const double rate, rate_ref.number());
  FVM_ASSIGN(const std::vector<PythonRef> stages, reader.trees());
  for (const PythonRef& stage : stages) {
    FVM_ASSIGN(const std::vector<PythonRef> trees, stage.items());
    if (trees.size() != outputs)
      return stage.error(formatted("{} trees for {} outputs", trees.size(), outputs));
    for (std::size_t k = 0; k < outputs; ++k) FVM_TRY(add_tree(reader, trees[k], rate, k));
  }
  set_values(reader, loss, std::move(labels));
  reader.set_rounds(static_cast<std::uint32_t>(outputs), "estimators_", true);
  return {};
}

}  // namespace forestvm::frontend
