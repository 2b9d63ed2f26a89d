// See ydf_forest.hpp.
#include "frontend/ydf_forest.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

/// YDF's numbers of losses.
enum class YdfLoss : std::uint8_t {
  Binomial = 1,
  SquaredError = 2,
  Multinomial = 3,
  LambdaMartNdcg5 = 4,
  XeNdcg = 5,
  BinaryFocal = 6,
  Poisson = 7,
  MeanAbsoluteError = 8,
  LambdaMartNdcg = 9,
};

/// A loss, the task and the number of outputs that YDF supports it for, and how predictions follow from raw scores.
struct LossRow {
  YdfLoss loss;
  const char* name;
  YdfTask task;
  bool output_per_class;
  Transform transform;
  ClassRule class_rule;
};

constexpr LossRow kLossRows[] = {
    {YdfLoss::Binomial, "BINOMIAL_LOG_LIKELIHOOD", YdfTask::Classification, false, Transform::PlainSigmoid,
     ClassRule::HalfOrMore},
    {YdfLoss::BinaryFocal, "BINARY_FOCAL_LOSS", YdfTask::Classification, false, Transform::PlainSigmoid,
     ClassRule::HalfOrMore},
    {YdfLoss::Multinomial, "MULTINOMIAL_LOG_LIKELIHOOD", YdfTask::Classification, true,
     Transform::PlainSoftmax, ClassRule::Argmax},
    {YdfLoss::SquaredError, "SQUARED_ERROR", YdfTask::Regression, false, Transform::Identity,
     ClassRule::None},
    {YdfLoss::MeanAbsoluteError, "MEAN_AVERAGE_ERROR", YdfTask::Regression, false, Transform::Identity,
     ClassRule::None},
    {YdfLoss::Poisson, "POISSON", YdfTask::Regression, false, Transform::CutExp, ClassRule::None},
    {YdfLoss::LambdaMartNdcg5, "LAMBDA_MART_NDCG5", YdfTask::Ranking, false, Transform::Identity,
     ClassRule::None},
    {YdfLoss::LambdaMartNdcg, "LAMBDA_MART_NDCG", YdfTask::Ranking, false, Transform::Identity,
     ClassRule::None},
    {YdfLoss::XeNdcg, "XE_NDCG_MART", YdfTask::Ranking, false, Transform::Identity, ClassRule::None},
};

// The largest forest that YDF's QuickScorer takes.
constexpr std::size_t kMaxQuickLeaves = 64, kMaxQuickTrees = 65'535;

Error leaf_error(const YdfNode& leaf, std::string_view message) {
  return refused(byte_location(leaf.offset), message);
}

Result<void> expect_output(const YdfNode& leaf, YdfOutput output) {
  return leaf.output == output ? Result<void>()
                               : leaf_error(leaf, "a leaf without the output of its kind of forest");
}

Result<YdfLeafRule> set_boosted(const YdfHeader& header, const YdfForestHeader& forest, std::int64_t classes,
                                Model& model) {
  const auto* row = std::find_if(std::begin(kLossRows), std::end(kLossRows), [&](const LossRow& known) {
    return static_cast<std::int64_t>(known.loss) == forest.loss && known.task == header.task;
  });
  if (row == std::end(kLossRows))
    return refused("loss", "loss {} of task {} is not supported", forest.loss, static_cast<int>(header.task));
  const std::int64_t outputs = row->output_per_class ? classes : 1;
  const bool two_classes = header.task != YdfTask::Classification || row->output_per_class || classes == 2;
  if (!two_classes || forest.trees_per_iteration != outputs ||
      forest.initial_predictions.size() != static_cast<std::size_t>(outputs))
    return refused("loss", "{} with {} classes, {} trees per iteration and {} initial predictions", row->name,
                   classes, forest.trees_per_iteration, forest.initial_predictions.size());
  if (row->output_per_class && classes == 2)
    return refused(
        "loss",
        "{} with two classes: YDF's predict() fails for such a model, and its slow engine, which computes other bits, is not supported. Train with BINOMIAL_LOG_LIKELIHOOD",
        row->name);
  model.objective = row->name;
  model.num_outputs = static_cast<std::uint32_t>(outputs);
  model.base.assign(forest.initial_predictions.begin(), forest.initial_predictions.end());
  model.transform = row->transform;
  model.class_rule = row->class_rule;
  return YdfLeafRule([](const YdfNode& leaf, std::size_t, Node& node, Tree&) -> Result<void> {
    FVM_TRY(expect_output(leaf, YdfOutput::Number));
    node.value = static_cast<double>(leaf.number);
    return {};
  });
}

/// Sets a leaf's output: the share of one tree in the average of each class. A model of two classes has only the share
/// of the second class.
class ClassShares {
 public:
  ClassShares(std::size_t classes, bool votes, std::int64_t trees)
      : classes_(classes), votes_(votes), trees_(trees) {}

  Result<void> operator()(const YdfNode& leaf, std::size_t, Node& node, Tree& tree) const {
    FVM_TRY(expect_output(leaf, YdfOutput::Class));
    if (votes_ && (leaf.top_class < 1 || static_cast<std::uint64_t>(leaf.top_class) > classes_))
      return leaf_error(leaf, formatted("class {} does not exist: there are {}", leaf.top_class, classes_));
    if (leaf.class_counts.size() != classes_ + 1)
      return leaf_error(
          leaf, formatted("{} counts for {} classes and unknown ones", leaf.class_counts.size(), classes_));
    if (classes_ == 2) {
      node.value = share(leaf, 2);
      return {};
    }
    tree.leaf_width = static_cast<std::uint32_t>(classes_);
    node.payload = static_cast<std::uint32_t>(tree.leaf_vectors.size() / classes_);
    for (std::size_t i = 1; i <= classes_; ++i) tree.leaf_vectors.push_back(share(leaf, i));
    return {};
  }

 private:
  double share(const YdfNode& leaf, std::size_t i) const {
    if (!votes_)
      return static_cast<double>(
          static_cast<float>(leaf.class_counts[i] / (leaf.count_sum * static_cast<double>(trees_))));
    return static_cast<std::size_t>(leaf.top_class) == i
               ? static_cast<double>(1.0f / static_cast<float>(trees_))
               : 0.0;
  }

  std::size_t classes_;
  bool votes_;
  std::int64_t trees_;
};

Result<YdfLeafRule> set_random(const YdfHeader& header, const YdfForestHeader& forest, std::int64_t classes,
                               Model& model) {
  model.objective = "RANDOM_FOREST";
  if (header.task == YdfTask::Regression) {
    model.base.assign(1, 0.0);
    return YdfLeafRule([trees = static_cast<float>(forest.num_trees)](const YdfNode& leaf, std::size_t,
                                                                      Node& node, Tree&) -> Result<void> {
      FVM_TRY(expect_output(leaf, YdfOutput::Number));
      node.value = static_cast<double>(leaf.number / trees);
      return {};
    });
  }
  if (header.task != YdfTask::Classification)
    return refused("task", "random forests of task {} are not supported", static_cast<int>(header.task));
  if (!header.gives_probabilities)
    return refused("classification_outputs_probabilities",
                   "a random forest without probabilities is not supported");
  model.num_outputs = classes == 2 ? 1 : static_cast<std::uint32_t>(classes);
  model.base.assign(model.num_outputs, 0.0);
  model.transform = Transform::Clamp;
  model.class_rule = classes == 2 ? ClassRule::HalfOrMore : ClassRule::Argmax;
  return YdfLeafRule(
      ClassShares(static_cast<std::size_t>(classes), forest.winner_takes_all, forest.num_trees));
}

/// Returns the length of path that is expected in a tree of `examples` training rows, as YDF computes it.
float expected_path(std::int64_t examples) {
  constexpr float kEulerGamma = 0.5772156649f;
  const auto n = static_cast<float>(examples);
  if (examples > 2) return 2.0f * (std::log(n - 1.0f) + kEulerGamma) - 2.0f * (n - 1.0f) / n;
  return examples == 2 ? 1.0f : 0.0f;
}

Result<YdfLeafRule> set_isolation(const YdfHeader& header, const YdfForestHeader& forest, std::int64_t,
                                  Model& model) {
  if (header.task != YdfTask::AnomalyDetection)
    return refused("task", "an isolation forest of task {}", static_cast<int>(header.task));
  if (forest.examples_per_tree < 2)
    return refused("num_examples_per_trees", "{} examples per tree", forest.examples_per_tree);
  model.objective = "ISOLATION_FOREST";
  model.base.assign(1, 0.0);
  model.transform = Transform::Anomaly;
  model.divisor = static_cast<double>(expected_path(forest.examples_per_tree));
  return YdfLeafRule([trees = static_cast<float>(forest.num_trees)](const YdfNode& leaf, std::size_t depth,
                                                                    Node& node, Tree&) -> Result<void> {
    FVM_TRY(expect_output(leaf, YdfOutput::Count));
    node.value = static_cast<double>((static_cast<float>(depth) + expected_path(leaf.num_examples)) / trees);
    return {};
  });
}

Error slow_engine_only(const std::string& place) {
  return refused(
      place,
      "missing values go where YDF's global imputation would not send them. No fast engine of YDF runs such "
      "a model; its slow one computes other bits and is not supported");
}

Result<void> set_generic_engine(const YdfForestHeader&, const YdfSplits& splits, Model&) {
  if (!splits.other_missing.empty()) return slow_engine_only(splits.other_missing);
  if (splits.oblique && !splits.other_missing_number.empty())
    return slow_engine_only(splits.other_missing_number);
  return {};
}

Result<void> set_isolation_engine(const YdfForestHeader&, const YdfSplits& splits, Model&) {
  return splits.other_missing.empty() ? Result<void>() : slow_engine_only(splits.other_missing);
}

/// Sets what depends on the engine that YDF takes: QuickScorer if it can run the model, otherwise the generic engine.
/// QuickScorer starts sums from the base; the generic engine adds the base last. For models that were trained to give
/// logits, the generic engine leaves out the base of several classes, and gives no logits for Poisson's loss.
Result<void> set_boosted_engine(const YdfForestHeader& forest, const YdfSplits& splits, Model& model) {
  FVM_TRY(set_generic_engine(forest, splits, model));
  const auto is_small = [](const Tree& tree) {
    return tree.nodes.size() - tree.first_leaf <= kMaxQuickLeaves;
  };
  const bool quick = model.num_outputs == 1 && !splits.oblique && !splits.missing_tests &&
                     model.trees.size() <= kMaxQuickTrees &&
                     std::all_of(model.trees.begin(), model.trees.end(), is_small);
  model.base_last = !quick;
  if (!forest.output_logits || (!quick && model.transform == Transform::CutExp)) return {};
  if (model.num_outputs > 1) std::fill(model.base.begin(), model.base.end(), 0.0);
  model.transform = Transform::Identity;
  model.class_rule = ClassRule::None;
  return {};
}

constexpr YdfKind kKinds[] = {
    {"GRADIENT_BOOSTED_TREES", "gradient_boosted_trees_header.pb", read_boosted_header, set_boosted,
     set_boosted_engine},
    {"RANDOM_FOREST", "random_forest_header.pb", read_random_header, set_random, set_generic_engine},
    {"ISOLATION_FOREST", "isolation_forest_header.pb", read_isolation_header, set_isolation,
     set_isolation_engine},
};

}  // namespace

const YdfKind* find_ydf_kind(std::string_view name) {
  const auto* row = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const YdfKind& kind) { return kind.name == name; });
  return row == std::end(kKinds) ? nullptr : row;
}

}  // namespace forestvm::frontend
