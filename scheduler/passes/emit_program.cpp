// Loop nests and tiled forests of all plans, encoder and model -> program, which is verified before it is
// handed on.
#include <algorithm>
#include <array>
#include <utility>

#include <forestvm/background.hpp>

#include "scheduler/compilation.hpp"
#include "scheduler/passes/emit.hpp"

namespace forestvm::scheduler {
namespace {

/// Returns the names of the model's features, which it moves out of a model that may be changed.
std::vector<std::string> take_feature_names(Compilation& compilation) {
  if (compilation.rewritable != nullptr) return std::move(compilation.rewritable->feature_names);
  return compilation.model.feature_names;
}

/// Returns the meaning of scores of some of a model's rounds: see keep_rounds.
RoundRule rule_of_rounds(const Model& model) {
  if (model.averaged) return RoundRule::Averages;
  if (model.divisor != 1) return RoundRule::None;
  return model.base_of_first_round ? RoundRule::FirstBase : RoundRule::Sums;
}

void emit_tables(Compilation& compilation, ProgramParts& parts) {
  const Model& model = compilation.model;
  const ForestShape forest = shape_of(model);
  ProgramMeta& meta = parts.meta;
  meta.num_features = model.num_features;
  meta.num_outputs = model.num_outputs;
  meta.num_trees = static_cast<std::uint32_t>(model.trees.size());
  meta.transform = model.transform;
  meta.class_rule = model.class_rule;
  meta.score_type = model.score_type;
  meta.row_type = model.row_type;
  meta.pair = model.pair;
  meta.scale = model.scale;
  meta.takes_margins = model.takes_margins ? 1 : 0;
  meta.early_stop = model.early_stop;
  const TransformParameters parameters = compilation.parameters;
  meta.divisor = parameters.divisor;
  meta.slope = parameters.slope;
  meta.offset = parameters.offset;
  meta.group_ends = parameters.group_ends;
  meta.contract = compilation.options.contract;
  meta.sums_in_model_order = 1;
  for (const Lowering& plan : compilation.plans) {
    if (!plan.sums.in_model_order) meta.sums_in_model_order = 0;
    if (plan.sums.unit != 0) meta.sum_unit = plan.sums.unit;  // plans with exact sums have the model's unit
  }
  meta.contributions = static_cast<std::uint8_t>(explained_outputs(compilation.options).size());
  if (const Background* const background = compilation.options.background.get())
    parts.background = {static_cast<std::uint32_t>(background->rows())};
  if (compilation.options.keeps_leaves) {
    meta.rounds = rule_of_rounds(model);
    parts.round_begins = model.round_begins;
    const UncertaintyRule rule = uncertainty_rule(model);
    if (rule != UncertaintyRule::None) parts.uncertainty.push_back({rule, {}, model.shrinkage});
  }
  const bool explains = meta.contributions != 0 || !parts.attribution_base.empty();
  if (explains && model.averaged) meta.rounds = RoundRule::Averages;  // contributions may be divided, too
  meta.fingerprint = compilation.fingerprint;
  meta.forest_nodes = forest.nodes;
  meta.forest_leaves = forest.leaves;
  meta.category_splits = forest.category_splits;
  meta.mean_depth = forest.mean_depth;
  meta.min_depth = forest.min_depth;
  meta.max_depth = forest.max_depth;
  meta.num_feature_names = static_cast<std::uint32_t>(model.feature_names.size());
  meta.num_class_labels = static_cast<std::uint32_t>(model.class_labels.size());

  parts.base = model.base;
  if (!model.base_last && model.score_type == ScalarType::Float32)
    for (double& base : parts.base) base = static_cast<double>(static_cast<float>(base));
  parts.leaf_vectors = std::move(compilation.leaf_vectors);
  parts.leaf_functions = std::move(compilation.leaf_functions);
  parts.leaf_terms = std::move(compilation.leaf_terms);
  parts.thresholds = thresholds_per_feature(model);
  emit_columns(model, parts);
  parts.zero_missing = std::move(compilation.row_rules.zero_missing);
  parts.wide_features = std::move(compilation.row_rules.wide_features);
  parts.wide_bounds = std::move(compilation.row_rules.wide_bounds);
  parts.strings = take_feature_names(compilation);
  parts.strings.insert(parts.strings.begin(), {model.format, model.trainer, model.version, model.objective,
                                               print(compilation.schedule)});
  parts.strings.insert(parts.strings.end(), model.class_labels.begin(), model.class_labels.end());
  for (const FeatureCategories& named : model.categories) {
    parts.category_names.push_back({named.feature,
                                    static_cast<std::uint32_t>(named.names.size()),
                                    named.unseen.value_or(0),
                                    static_cast<std::uint8_t>(named.unseen ? 0 : 1),
                                    {}});
    parts.strings.insert(parts.strings.end(), named.names.begin(), named.names.end());
  }
}

}  // namespace

Result<void> emit_program(Compilation& compilation) {
  const std::vector<Lowering>& plans = compilation.plans;
  const RankTable& ranks = compilation.ranks;
  ProgramParts parts;
  parts.encoded_features = ranks.features();
  parts.columns = ranks.columns();
  parts.ranks = ranks.ranks();
  parts.category_columns = ranks.categories();
  parts.category_words = ranks.category_words();
  FVM_ASSIGN(const std::vector<PlanNumbers> numbers, emit_forest(plans, ranks, parts));
  std::vector<std::uint32_t> others;  // blocks of the other outputs
  for (const OutputKind output : explained_outputs(compilation.options))
    others.push_back(emit_explanation(output, compilation.is_mapped(), parts));
  for (std::size_t p = 0; p < plans.size(); ++p) FVM_TRY(emit_code(plans[p], numbers[p], parts));
  for (; !others.empty(); others.pop_back()) end_explanation(others.back(), parts);
  if (!compilation.explained.trees.empty()) {
    emit_paths(compilation.model, std::move(compilation.explained), ranks, parts);
  }
  parts.attributed_trees = std::move(compilation.attributed.trees);
  parts.attributed_leaves = std::move(compilation.attributed.leaves);
  parts.attributions = std::move(compilation.attributed.attributions);
  parts.attribution_base = std::move(compilation.attributed.base);
  parts.sampled_trees = std::move(compilation.sampled.trees);
  parts.sampled_leaves = std::move(compilation.sampled.leaves);
  parts.sample_targets = std::move(compilation.sampled.sample_targets);
  parts.targets = std::move(compilation.sampled.targets);
  parts.code.push_back(pack(Op::Halt, std::array<std::uint32_t, kMaxOperands>{}.data()));
  emit_tables(compilation, parts);
  FVM_ASSIGN(compilation.program, build_program(parts));
  return {};
}

}  // namespace forestvm::scheduler
