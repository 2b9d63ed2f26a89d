// See call_options.hpp.
#include "vm/call/call_options.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include <forestvm/core/sums.hpp>
#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "vm/call/number_text.hpp"

namespace forestvm {
namespace {

Failure wrong_option(std::string_view where, std::string_view message) {
  return fail(ErrorCode::Usage, where, message);
}

std::string shape_text(std::size_t rows, std::size_t columns) { return formatted("({}, {})", rows, columns); }

/// Returns whether some accumulator counts units of exact sums: a margin need not be a multiple of the unit.
bool sums_exactly(const Program& program) {
  const auto all = program.accumulators();
  return std::ranges::any_of(all, [](const AccumulatorDesc& desc) {
    return desc.kind == AccumulatorKind::Exact64 || desc.kind == AccumulatorKind::Exact128;
  });
}

Result<void> check_margins(const Program& program, OutputKind output, std::size_t rows,
                           const BaseMargin& margins) {
  constexpr const char* kWhere = "base margins";
  const ProgramMeta& meta = program.meta();
  if (output == OutputKind::Leaf) return wrong_option(kWhere, "leaf numbers do not depend on them");
  if (output == OutputKind::Trees) return wrong_option(kWhere, "the outputs of trees do not depend on them");
  if (output == OutputKind::Quantile) return wrong_option(kWhere, "quantiles do not depend on them");
  if (meta.takes_margins == 0)
    return refused(kWhere,
                   "are for models of XGBoost, and of LightGBM if they do not average; this one is of {}",
                   program.text(StringId::Trainer));
  if (output == OutputKind::ApproxContributions && program.attribution_base().size() == meta.num_outputs)
    return refused(
        kWhere,
        "the program was compiled by an earlier forestvm, which did not keep the mean of the trees: "
        "compile the model again");
  if (!explains_scores(output) && sums_exactly(program))
    return refused(kWhere,
                   "the program counts sums exactly (contract reproducible), in units of which a margin "
                   "need be no multiple: compile the model with another contract");
  if (margins.rows != rows || margins.outputs != meta.num_outputs)
    return wrong_option(
        kWhere, formatted("have the shape {}, the raw scores of these rows {}",
                          shape_text(margins.rows, margins.outputs), shape_text(rows, meta.num_outputs)));
  const bool wide = meta.score_type == ScalarType::Float64;
  for (std::size_t i = 0; i < rows * meta.num_outputs; ++i) {
    const double margin = margin_at(margins, i);
    const bool finite = wide ? std::isfinite(margin) : std::isfinite(static_cast<float>(margin));
    if (finite) continue;
    return wrong_option(
        kWhere,
        formatted("row {}, output {}: {}{}", i / meta.num_outputs, i % meta.num_outputs, number_text(margin),
                  std::isfinite(margin) ? " is beyond float32, in which this model sums" : " is not finite"));
  }
  return {};
}

/// Returns whether all walks for sums have accumulators of one of these kinds.
bool sums_are(const Program& program, std::initializer_list<AccumulatorKind> kinds) {
  return std::ranges::all_of(code_map(program).insts, [&](const InstFacts& inst) {
    return inst.walk_sums == kNoAccumulator ||
           std::ranges::find(kinds, program.accumulators()[inst.walk_sums].kind) != kinds.end();
  });
}

Result<void> check_early_stop(const Program& program, OutputKind output, const EarlyStop& stop) {
  constexpr const char* kWhere = "early stop";
  if (output == OutputKind::Leaf) return wrong_option(kWhere, "leaf numbers are of all trees");
  if (explains_scores(output)) return wrong_option(kWhere, formatted("{} are of all trees", name_of(output)));
  if (output == OutputKind::Quantile) return wrong_option(kWhere, "quantiles are of all trees");
  if (is_of_trees(output)) return wrong_option(kWhere, "the outputs of trees and stages are of all trees");
  if (!(stop.margin >= 0))
    return wrong_option(kWhere, formatted("a margin of {}, expected 0 or more", number_text(stop.margin)));
  if (stop.every == 0) return wrong_option(kWhere, "after every 0 rounds, expected 1 or more");
  if (program.meta().early_stop == EarlyStopRule::None)
    return refused(kWhere,
                   "is for LightGBM's models of classes and ranks; this one ({}, {}) needs all its trees",
                   program.text(StringId::Trainer), program.text(StringId::Objective));
  using enum AccumulatorKind;
  if (program.round_begins().empty() && (program.mapped() || !sums_are(program, {PerTree, PerTree64})))
    return refused(kWhere,
                   "the program does not keep each tree's leaf: compile the model with --with early-stop "
                   "(CompileOptions::keeps_leaves, Python's keep_leaves=True)");
  if (!sums_are(program, {PerTree64, F64}))
    return refused(kWhere, "the program adds no float64 scores, as LightGBM does");
  return {};
}

Result<void> check_rounds(const Program& program, OutputKind output, const Rounds& rounds) {
  constexpr const char* kWhere = "rounds";
  const bool has_trees = output == OutputKind::Contributions || output == OutputKind::Interactions;
  if (has_trees && !program.background().empty())
    return wrong_option(kWhere,
                        "contributions against a background are of all rounds of the program: compile "
                        "the model for the rounds");
  if (output == OutputKind::Leaf || output == OutputKind::Quantile ||
      output == OutputKind::ApproxContributions)
    return wrong_option(
        kWhere,
        formatted("the {} of a call are of all rounds of the program: compile the model for the rounds",
                  output == OutputKind::Leaf       ? "leaf numbers"
                  : output == OutputKind::Quantile ? "quantiles"
                                                   : name_of(output)));
  const auto begins = program.round_begins();
  if (begins.empty())
    return refused(kWhere,
                   "the program does not keep each tree's leaf: compile the model with --with rounds, or for "
                   "the rounds");
  if (program.meta().rounds == RoundRule::None)
    return refused(kWhere, "the model's trees are not rounds of boosting: all of them are needed");
  if (rounds.begin < rounds.end && rounds.end < begins.size()) return {};
  return wrong_option(kWhere, formatted("{}:{}: expected A:B with A < B, and B at most {}, the program's "
                                        "number of rounds",
                                        rounds.begin, rounds.end, begins.size() - 1));
}

Result<void> check_features(const Program& program, OutputKind output,
                            std::span<const std::uint32_t> features) {
  constexpr const char* kWhere = "features";
  if (!explains_scores(output))
    return wrong_option(
        kWhere, formatted("are chosen for contributions and interactions, not for {}", name_of(output)));
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (features[i] >= program.meta().num_features)
      return wrong_option(kWhere, formatted("number {} is {}, but the model has {} features", i, features[i],
                                            program.meta().num_features));
    if (i != 0 && features[i] <= features[i - 1])
      return wrong_option(kWhere,
                          formatted("number {} is {}, which is not above the one before it", i, features[i]));
  }
  return {};
}

Result<void> check_quantiles(std::span<const double> quantiles) {
  constexpr const char* kWhere = "quantiles";
  if (quantiles.empty() || quantiles.size() > kMaxContributions)
    return wrong_option(kWhere,
                        formatted("{} of them: expected 1 to {}", quantiles.size(), kMaxContributions));
  for (const double quantile : quantiles)
    if (!(quantile >= 0 && quantile <= 1))
      return wrong_option(kWhere, formatted("{}: expected a number from 0 to 1", number_text(quantile)));
  return {};
}

/// Checks the virtual ensembles of a call, for which the program has a rule.
Result<void> check_ensembles(const Program& program, const CallOptions& options) {
  if (program.uncertainty()[0].rule == UncertaintyRule::Trees) return {};
  constexpr const char* kWhere = "virtual ensembles";
  const Rounds rounds = rounds_of(program, options);
  if (rounds.begin != 0)
    return wrong_option(kWhere,
                        formatted("the rounds {}:{} do not begin with the first", rounds.begin, rounds.end));
  if (period_of(rounds, options) != 0) return {};
  return wrong_option(kWhere, formatted("{} of them: expected 1 to {}, half of the {} rounds",
                                        options.ensembles, rounds.end / 2, rounds.end));
}

}  // namespace

std::uint64_t width_of_rounds(const Program& program, OutputKind output, const CallOptions& options) {
  const auto begins = program.round_begins();
  if (begins.empty()) return 0;
  const Rounds rounds = rounds_of(program, options);
  if (rounds.begin >= rounds.end || rounds.end >= begins.size() || options.every == 0) return 0;
  const std::uint64_t outputs = program.meta().num_outputs;
  const bool members = output == OutputKind::VirtEnsembles;
  if (members || output == OutputKind::Uncertainty) {
    const auto all = program.uncertainty();
    if (all.empty()) return 0;
    if (all[0].rule == UncertaintyRule::Trees) return members ? 0 : 2 * outputs;
    if (rounds.begin != 0 || period_of(rounds, options) == 0) return 0;
    return members ? outputs * options.ensembles : all[0].rule == UncertaintyRule::Gaussian ? 3 : 2;
  }
  if (output == OutputKind::Staged)
    return program.meta().rounds == RoundRule::None ? 0 : outputs * stage_count(rounds, options.every);
  const std::uint64_t trees = begins[rounds.end] - begins[rounds.begin];
  return program.leaf_vectors().empty() ? trees : outputs * trees;
}

double margin_at(const BaseMargin& margins, std::size_t i) {
  const auto* const bytes = static_cast<const std::byte*>(margins.data);
  if (margins.float64) {
    double margin;
    std::memcpy(&margin, bytes + i * sizeof margin, sizeof margin);
    return margin;
  }
  float margin;
  std::memcpy(&margin, bytes + i * sizeof margin, sizeof margin);
  return static_cast<double>(margin);
}

std::vector<double> tree_means(const Program& program, OutputKind output) {
  const std::size_t outputs = program.meta().num_outputs;
  if (output == OutputKind::ApproxContributions) {
    const auto means = program.attribution_base().subspan(outputs);
    return {means.begin(), means.end()};
  }
  std::vector<double> means(outputs);
  for (const ExplainedTree& tree : program.explained_trees()) means[tree.output] += tree.expected;
  return means;
}

double mean_of_trees(const Program& program, std::size_t output, std::size_t begin, std::size_t end) {
  double mean = 0;
  for (const ExplainedTree& tree : program.explained_trees().subspan(begin, end - begin))
    if (tree.output == output) mean += tree.expected;
  return program.meta().score_type == ScalarType::Float32 ? static_cast<double>(static_cast<float>(mean))
                                                          : mean;
}

Result<void> check_options(const Program& program, OutputKind output, std::size_t rows,
                           const CallOptions& options) {
  if (options.base_margin.data != nullptr) FVM_TRY(check_margins(program, output, rows, options.base_margin));
  if (options.early_stop) FVM_TRY(check_early_stop(program, output, *options.early_stop));
  if (options.rounds) FVM_TRY(check_rounds(program, output, *options.rounds));
  if (!options.features.empty()) FVM_TRY(check_features(program, output, options.features));
  if (output == OutputKind::VirtEnsembles || output == OutputKind::Uncertainty)
    FVM_TRY(check_ensembles(program, options));
  if (output == OutputKind::Quantile) FVM_TRY(check_quantiles(options.quantiles));
  if (output == OutputKind::Staged && options.every == 0)
    return wrong_option("stages", "after every 0 rounds, expected 1 or more");
  if (is_of_trees(output) && width_of_rounds(program, output, options) > kMaxContributions)
    return refused(formatted("output {}", name_of(output)), "a row would have more than {} numbers",
                   kMaxContributions);
  return {};
}

}  // namespace forestvm
