// See treelite_model.hpp.
#include "frontend/treelite_model.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/treelite_tree.hpp"

namespace forestvm::frontend {
namespace {

/// The models for which a postprocessor is supported: any, models of one target, or models of one score.
enum class Takes { Anything, OneTarget, OneScore };

struct Postprocessor {
  std::string_view name;
  Transform narrow, wide;
  Takes takes;
};

constexpr Postprocessor kPostprocessors[] = {
#define FVM_TREELITE_POSTPROCESSOR(name, narrow, wide, takes) \
  {name, Transform::narrow, Transform::wide, Takes::takes},
#include "frontend/treelite_postprocessors.def"
};

Error header_error(const char* field, std::string_view message) {
  return refused(std::string("header: ") + field, message);
}

/// Sets the shape of the scores: targets x classes.
Result<void> set_outputs(const TreeliteHeader& header, const LoadLimits& limits, Model& model) {
  const std::int32_t classes = header.num_classes.front();
  if (std::any_of(header.num_classes.begin(), header.num_classes.end(), [&](auto n) { return n != classes; }))
    return header_error("num_class", "targets with different numbers of classes are not supported");
  if (classes < 1) return header_error("num_class", formatted("{} classes", classes));
  const std::uint64_t outputs = static_cast<std::uint64_t>(classes) * header.num_classes.size();
  if (outputs > limits.max_outputs)
    return header_error("num_class",
                        formatted("{} outputs are more than the limit of {}", outputs, limits.max_outputs));
  model.num_outputs = static_cast<std::uint32_t>(outputs);
  if (header.base_scores.size() != outputs)
    return header_error("base_scores",
                        formatted("{} base scores for {} outputs", header.base_scores.size(), outputs));
  model.base = header.base_scores;
  model.base_last = true;
  return {};
}

/// Sets everything but the trees.
Result<void> set_header(const TreeliteHeader& header, const LoadLimits& limits, Model& model) {
  model.format = "treelite";
  model.trainer = "treelite";
  model.version = header.version;
  model.row_type = model.score_type = header.type;
  if (header.num_features < 0 || static_cast<std::uint32_t>(header.num_features) > limits.max_features)
    return header_error("num_feature",
                        formatted("{} is not within 0 and {}", header.num_features, limits.max_features));
  model.num_features = static_cast<std::uint32_t>(header.num_features);
  return set_outputs(header, limits, model);
}

Result<void> set_postprocessor(const TreeliteHeader& header, Model& model) {
  const auto wrong = [&](const std::string& message) {
    return header_error("postprocessor", in_quotes(header.postprocessor) + message);
  };
  if (!is_utf8(header.postprocessor)) return wrong(" is not UTF-8");
  const auto* row =
      std::find_if(std::begin(kPostprocessors), std::end(kPostprocessors),
                   [&](const Postprocessor& known) { return known.name == header.postprocessor; });
  if (row == std::end(kPostprocessors)) return wrong(" is not one that Treelite has");
  const std::size_t targets = header.num_classes.size();
  if (row->takes == Takes::OneTarget && targets != 1)
    return wrong(formatted(" of {} targets is not supported", targets));
  if (row->takes == Takes::OneScore && header.num_classes.front() != 1)
    return wrong(formatted(" of {} classes is not supported", header.num_classes.front()));
  model.objective = header.postprocessor;
  model.transform = header.type == ScalarType::Float64 ? row->wide : row->narrow;
  const bool sigmoid = model.transform == Transform::PlainSigmoid;
  if (sigmoid) model.slope = static_cast<double>(header.sigmoid_alpha);
  if (model.transform == Transform::Anomaly) model.slope = static_cast<double>(header.ratio_c);
  if (!std::isfinite(model.slope) || model.slope == 0)
    return wrong(" with sigmoid_alpha or ratio_c 0 or not finite");
  if (targets != 1) return {};
  if (header.num_classes.front() > 1)
    model.class_rule = ClassRule::Argmax;
  else if (sigmoid)
    model.class_rule = ClassRule::AboveHalf;
  else if (model.transform == Transform::Step)
    model.class_rule = ClassRule::Value;
  return {};
}

/// Returns the output to which a tree adds; num_outputs if its leaves have a value for each output.
Result<std::uint32_t> output_of(const TreeliteHeader& header, const Model& model, std::size_t tree) {
  const std::int32_t target = header.target_ids[tree], kind = header.class_ids[tree];
  const std::int32_t classes = header.num_classes.front();
  const auto targets = static_cast<std::int32_t>(header.num_classes.size());
  const auto wrong = [&](const std::string& message) {
    return header_error("target_id",
                        formatted("tree {}: target {} and class {}{}", tree, target, kind, message));
  };
  if (target < -1 || target >= targets || kind < -1 || kind >= classes) return wrong(" do not exist");
  const bool all_targets = target == -1, all_classes = kind == -1;
  if (header.leaf_targets != (all_targets ? targets : 1) ||
      header.leaf_classes != (all_classes ? classes : 1))
    return wrong(" do not fit leaf_vector_shape");
  if (!all_targets && !all_classes) return static_cast<std::uint32_t>(target * classes + kind);
  if (static_cast<std::uint64_t>(header.leaf_targets) * static_cast<std::uint64_t>(header.leaf_classes) !=
      model.num_outputs)
    return wrong(": leaves with values for some of the outputs are not supported");
  return model.num_outputs;
}

/// Sets the rounds. If the trees' outputs repeat in order, or all leaves are vectors, each round has one tree for every
/// output, or one vector tree. Otherwise all trees are one round, and the function returns false.
bool set_treelite_rounds(Model& model) {
  const std::size_t width = trees_per_round(model);
  bool regular = !model.trees.empty() && model.trees.size() % width == 0;
  for (std::size_t i = 0; i < model.trees.size() && regular; ++i)
    regular = width == 1 || model.trees[i].output == i % width;
  const std::size_t step = regular ? width : std::max<std::size_t>(1, model.trees.size());
  for (std::size_t i = 0; i < model.trees.size(); i += step)
    model.round_begins.push_back(static_cast<std::uint32_t>(i));
  model.round_begins.push_back(static_cast<std::uint32_t>(model.trees.size()));
  return regular;
}

/// Sets the divisor of an average over trees. Treelite divides each output by the number of its trees, adds the base
/// and applies the postprocessor; a Model's raw scores are sums, which the transform divides.
Result<void> set_average(const TreeliteHeader& header, bool rounds, Model& model) {
  if (!header.averaged) return {};
  if (!rounds)
    return header_error("average_tree_output",
                        "an average over trees that are not one for each output in turn is not supported");
  if (std::any_of(model.base.begin(), model.base.end(), [](double base) { return base != 0; }))
    return header_error("base_scores", "base scores beside an average of trees are not supported");
  model.averaged = true;
  if (model.transform == Transform::Identity) model.transform = Transform::Average;
  return {};
}

}  // namespace

Result<ParsedModel> read_treelite(std::span<const std::byte> bytes, const LoadLimits& limits) {
  ParsedModel parsed;
  Model& model = parsed.model;
  std::vector<std::size_t> offsets;
  std::uint64_t nodes = 0;
  const auto receive = [&](const TreeliteHeader& header, const TreeliteTree& columns) -> Result<void> {
    if (columns.number == 0) FVM_TRY(set_header(header, limits, model));
    FVM_ASSIGN(const std::uint32_t output, output_of(header, model, columns.number));
    nodes += columns.nodes();
    if (nodes > limits.max_nodes)
      return refused(formatted("byte {}: tree {}", columns.offset, columns.number),
                     "more nodes than the limit of {}", limits.max_nodes);
    const bool vectors = output == model.num_outputs;
    FVM_ASSIGN(Tree tree, tree_of(columns, vectors ? model.num_outputs : 1));
    tree.output = vectors ? 0 : output;
    model.trees.push_back(std::move(tree));
    offsets.push_back(columns.offset);
    return {};
  };
  FVM_ASSIGN(const TreeliteHeader header, read_treelite_checkpoint(bytes, limits, receive));
  if (model.trees.empty()) FVM_TRY(set_header(header, limits, model));
  FVM_TRY(set_postprocessor(header, model));
  FVM_TRY(set_average(header, set_treelite_rounds(model), model));
  parsed.tree_location = [offsets = std::move(offsets)](std::size_t tree) {
    return formatted("byte {}", offsets[tree]);
  };
  return parsed;
}

}  // namespace forestvm::frontend
