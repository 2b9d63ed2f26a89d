// See onnx_model.hpp. Where ONNX leaves rules for classes and transforms open, ONNX Runtime's are taken.
#include "frontend/onnx_model.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "frontend/foreign_formats.hpp"
#include "frontend/onnx_graph.hpp"
#include "frontend/onnx_tree.hpp"

namespace forestvm::frontend {
namespace {

Error wrong(const OnnxForest& forest, std::string_view message) { return refused(forest.where, message); }

Result<Transform> transform_of(const OnnxForest& forest) {
  switch (forest.post) {
    case OnnxPost::None:
      return Transform::Identity;
    case OnnxPost::Softmax:
      return Transform::Softmax;
    case OnnxPost::Logistic:
      return Transform::Logistic;
    case OnnxPost::SoftmaxZero:
      return Transform::SoftmaxZero;
    case OnnxPost::Probit:
      break;
  }
  return wrong(forest, "post_transform PROBIT is not read");
}

bool all_weights(const OnnxForest& forest, bool (*holds)(double)) {
  return std::all_of(forest.weights.begin(), forest.weights.end(), holds);
}

/// Sets the one output of a classifier of two classes whose weights all have the class id 0. In spite of this id, the
/// output is the score of class 1.
Result<void> set_pair(const Transform transform, OnnxForest& forest, Model& model) {
  if (forest.base.size() > 1)
    return wrong(forest, "base_values: two numbers for the one score of two classes");
  const bool probabilities = all_weights(forest, [](double w) { return w >= 0; });
  forest.num_outputs = 1;
  // ONNX Runtime ignores SOFTMAX for one score.
  model.transform = transform == Transform::Logistic ? transform : Transform::Identity;
  model.pair = transform == Transform::Logistic || probabilities ? Pair::Complement : Pair::Negation;
  model.class_rule = probabilities ? ClassRule::RawAboveHalf : ClassRule::RawPositive;
  return {};
}

/// Sets the outputs of a classifier. ONNX Runtime takes the largest score among the classes that a row's leaves add to,
/// which is the largest of all if every class gets a score.
Result<void> set_classes(const Transform transform, const OnnxShape& shape, OnnxForest& forest,
                         Model& model) {
  std::vector<std::uint32_t> ids = forest.targets;
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (forest.class_labels.size() == 2 && ids.size() == 1) {
    if (ids[0] == 0) return set_pair(transform, forest, model);
    return wrong(forest, "class_ids: the one score of two classes must have id 0");
  }
  const std::size_t expected = forest.class_labels.size();
  if (!forest.base.empty() && (expected == 2 || forest.base.size() != expected))
    return wrong(forest, formatted("base_values: {} numbers for the scores of {} classes", forest.base.size(),
                                   expected));
  const bool positive = all_weights(forest, [](double w) { return w > 0; });
  const auto missing = std::find(shape.always.begin(), shape.always.end(), false);
  if (forest.base.empty() && !positive && missing != shape.always.end())
    return wrong(forest,
                 formatted("class {} gets no score on some rows, and others may be negative",
                           forest.class_labels[static_cast<std::size_t>(missing - shape.always.begin())]));
  model.transform = transform;
  model.class_rule = ClassRule::RawArgmax;
  return {};
}

/// Refuses the post transforms of regressors for which ONNX Runtime does something else than the standard says: it
/// ignores any transform of a single target, and takes number 1 of TreeEnsemble for LOGISTIC and 2 for SOFTMAX.
Result<void> check_post(const OnnxPipeline& pipeline) {
  const OnnxForest& forest = pipeline.forest;
  const std::string advice =
      ": ONNX Runtime does not do what the standard says; use NONE and a node Sigmoid or Softmax";
  if (forest.post != OnnxPost::None && forest.num_outputs == 1)
    return wrong(forest, "a post_transform of one target" + advice);
  if (pipeline.type == "TreeEnsemble" &&
      (forest.post == OnnxPost::Softmax || forest.post == OnnxPost::Logistic))
    return wrong(forest, formatted("post_transform {}{}", static_cast<int>(forest.post), advice));
  return {};
}

/// Sets the outputs of a regressor. ONNX Runtime adds no base to a target to which a row's leaves add nothing.
Result<void> set_targets(const Transform transform, const OnnxPipeline& pipeline, const OnnxShape& shape,
                         Model& model) {
  const OnnxForest& forest = pipeline.forest;
  if (!forest.base.empty() && forest.base.size() != forest.num_outputs)
    return wrong(forest,
                 formatted("base_values: {} numbers for {} targets", forest.base.size(), forest.num_outputs));
  for (std::size_t i = 0; i < forest.base.size(); ++i)
    if (forest.base[i] != 0 && !shape.always[i])
      return wrong(forest, formatted("base_values: target {} gets no weight on some rows", i));
  if (!pipeline.transformed) FVM_TRY(check_post(pipeline));
  model.transform = transform;
  if (pipeline.argmax) model.class_rule = ClassRule::Argmax;
  return {};
}

/// Sets the rounds. If the outputs of the trees repeat in order, each round has one tree for every output; otherwise
/// each tree is a round.
void set_onnx_rounds(Model& model) {
  const std::size_t round = trees_per_round(model);
  bool in_turn = model.trees.size() % round == 0;
  for (std::size_t t = 0; t < model.trees.size() && in_turn && round > 1; ++t)
    in_turn = model.trees[t].output == t % round;
  for (std::size_t t = 0; t < model.trees.size(); t += in_turn ? round : 1)
    model.round_begins.push_back(static_cast<std::uint32_t>(t));
  model.round_begins.push_back(static_cast<std::uint32_t>(model.trees.size()));
}

/// Returns the labels of the classes; none if each label is the number of its class.
std::vector<std::string> labels_of(const std::vector<std::string>& labels) {
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != std::to_string(i)) return labels;
  return {};
}

}  // namespace

bool sniff_onnx(std::span<const std::byte> bytes) {
  constexpr std::int64_t kMaxIrVersion = 1000;
  // The fields of ModelProto by wire type. The first field of a file is the version, which all files have.
  constexpr std::uint32_t kNumbers[] = {1, 5}, kTexts[] = {2, 3, 4, 6, 7, 8, 14, 20, 25};
  if (is_core_ml(bytes) || is_saved_model(bytes)) return false;  // they begin as ONNX files do
  WireReader reader({bytes, 0});
  for (bool first = true; !reader.at_end(); first = false) {
    const Result<WireField> field = reader.next();
    if (!field) return !first || (bytes.size() == 1 && bytes[0] == std::byte{8});
    const bool number = field->type == WireType::Varint;
    if (first && (field->number != 1 || !number || field->bits == 0 || field->bits > kMaxIrVersion))
      return false;
    const auto known =
        number ? std::span<const std::uint32_t>(kNumbers) : std::span<const std::uint32_t>(kTexts);
    if ((!number && field->type != WireType::Bytes) ||
        std::find(known.begin(), known.end(), field->number) == known.end())
      return false;
  }
  return !bytes.empty();
}

Result<ParsedModel> read_onnx(std::span<const std::byte> bytes, const LoadLimits& limits) {
  FVM_ASSIGN(const OnnxModel file, read_onnx_file(bytes));
  FVM_ASSIGN(OnnxPipeline pipeline, read_onnx_graph(file.graph, limits));
  OnnxForest& forest = pipeline.forest;
  FVM_ASSIGN(const Transform transform, transform_of(forest));
  FVM_ASSIGN(const OnnxShape shape, check_onnx_trees(forest, pipeline.columns.width));

  ParsedModel parsed;
  Model& model = parsed.model;
  model.format = "onnx";
  model.trainer = "onnx";
  model.version = std::string(file.producer) + (file.producer_version.empty() ? "" : " ") +
                  std::string(file.producer_version);
  model.objective = formatted("{} {}", pipeline.type, kOnnxPostNames[static_cast<std::size_t>(forest.post)]);
  model.num_features = pipeline.num_features;
  model.feature_names = std::move(pipeline.feature_names);
  model.computed_columns = std::move(pipeline.computed);
  model.class_labels = labels_of(forest.class_labels);
  model.row_type = pipeline.columns.row_type;
  model.score_type = ScalarType::Float64;
  if (forest.classifier) {
    FVM_TRY(set_classes(transform, shape, forest, model));
  } else {
    FVM_TRY(set_targets(transform, pipeline, shape, model));
  }
  model.num_outputs = forest.num_outputs;
  model.base = forest.base;
  model.base.resize(model.num_outputs);
  model.base_last = true;
  if (forest.aggregate == OnnxAggregate::Average && !forest.roots.empty())
    model.scale = 1 / static_cast<double>(forest.roots.size());
  FVM_ASSIGN(model.trees, onnx_trees(forest, shape, pipeline.columns, limits));
  set_onnx_rounds(model);
  parsed.tree_location = [where = forest.where](std::size_t) { return where; };
  return parsed;
}

}  // namespace forestvm::frontend
