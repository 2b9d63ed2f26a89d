// See device_calls.hpp.
#include "kernels/backend/device_calls.hpp"

#include <algorithm>
#include <vector>

#include <forestvm/core/sums.hpp>
#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/groups.hpp>
#include <forestvm/internal/names.hpp>

namespace forestvm::kernels {
namespace {

/// Returns whether walks keep each tree's leaf wherever they add up scores.
bool keeps_all_leaves(const Program& program) {
  return std::ranges::all_of(code_map(program).insts, [&](const InstFacts& inst) {
    return inst.walk_sums == kNoAccumulator || is_per_tree(program.accumulators()[inst.walk_sums].kind);
  });
}

}  // namespace

bool has_on_device(const Program& program, OutputKind output) {
  switch (output) {
    case OutputKind::Raw:
    case OutputKind::Value:
    case OutputKind::Class:
    case OutputKind::Leaf:
      return true;
    case OutputKind::Contributions:
      return program.meta().contributions != 0;
    case OutputKind::Trees:
      return !program.round_begins().empty();
    case OutputKind::Staged:
      return !program.round_begins().empty() && program.meta().rounds != RoundRule::None;
    case OutputKind::ApproxContributions:
      return !program.attribution_base().empty();
    case OutputKind::Uncertainty:
      return !program.uncertainty().empty();
    case OutputKind::VirtEnsembles:
      return !program.uncertainty().empty() && program.uncertainty()[0].rule != UncertaintyRule::Trees;
    case OutputKind::Interactions:
      return program.meta().contributions > 1;
    case OutputKind::Quantile:
      return !program.targets().empty();
  }
  return false;
}

Result<void> check_device_call(const Program& program, OutputKind output, const CallOptions& options,
                               bool on_device) {
  if (!has_on_device(program, run_output(output, options)))
    return refused(formatted("output {}", name_of(output)), "is computed by the host only");
  if (on_device && output == OutputKind::Quantile)
    return refused("output quantile",
                   "is computed for rows of the host only, not for rows in a GPU's memory");
  if (on_device && options.base_margin.data != nullptr)
    return refused("base margins", "are taken with rows of the host only, not with rows in a GPU's memory");
  if (on_device && options.rounds && explains_scores(output))
    return refused("rounds of a call",
                   "are chosen for {} of rows of the host only, not of rows in a GPU's memory",
                   name_of(output));
  if (!options.features.empty()) return refused("features of a call", "are chosen on the host only");
  if (!options.rounds) return {};
  if (!explains_scores(output) && !counts_as_model(program) && !keeps_all_leaves(program))
    return refused("rounds of a call",
                   "the program adds trees in another order than the model's, from which a GPU chooses none");
  return {};
}

void write_base(const Program& program, OutputKind output, const CallOptions& options, std::size_t begin,
                std::size_t rows, double* to) {
  if (output == OutputKind::Quantile) {
    std::ranges::copy(options.quantiles, to);
    return;
  }
  const ProgramMeta& meta = program.meta();
  const std::size_t outputs = meta.num_outputs;
  const bool wide = meta.score_type == ScalarType::Float64;
  const bool no_base = meta.rounds == RoundRule::FirstBase && options.rounds && options.rounds->begin != 0;
  std::vector<double> means(outputs);
  if (explains_scores(output) && !options.rounds) means = tree_means(program, output);
  if (explains_scores(output) && options.rounds) {
    const std::size_t each = explained_per_tree(program);
    const auto begins = program.round_begins();
    for (std::size_t k = 0; k < outputs; ++k)
      means[k] =
          mean_of_trees(program, k, begins[options.rounds->begin] * each, begins[options.rounds->end] * each);
  }
  for (std::size_t i = 0; i < rows * outputs; ++i) {
    double base = no_base ? 0 : program.base()[i % outputs];
    if (options.base_margin.data != nullptr) {
      base = margin_at(options.base_margin, begin * outputs + i);
      if (!wide) base = static_cast<double>(static_cast<float>(base));
    }
    if (!explains_scores(output)) {
      to[i] = base;
      continue;
    }
    // The mean of the trees is in the type of the scores, and so are approximate contributions.
    const double mean = means[i % outputs],
                 sum = base + (wide ? mean : static_cast<double>(static_cast<float>(mean)));
    const bool rounded = output == OutputKind::ApproxContributions && !wide;
    to[i] = rounded ? static_cast<double>(static_cast<float>(sum)) : sum;
  }
}

void set_options(const Program& program, const DeviceProgram& device, const LaunchOptions& options,
                 const double* base, Launch& launch) {
  const ProgramMeta& meta = program.meta();
  LaunchPass& pass = launch.pass;
  pass.base = device.base();
  pass.walked = {0, 0};
  pass.added = {0, meta.num_trees};
  pass.every = options.every;
  pass.ensembles = options.ensembles;
  pass.margin = options.margin;
  const auto begins = program.round_begins();
  if (!begins.empty()) pass.end_round = static_cast<std::uint32_t>(begins.size() - 1);
  if (options.rounds) {
    const Rounds rounds = *options.rounds;
    pass.first_round = rounds.begin;
    pass.end_round = rounds.end;
    pass.added = {begins[rounds.begin], begins[rounds.end]};
    // Otherwise all trees are walked, and those of the rounds are added.
    if (device.counts_as_model()) pass.walked = pass.added.end != 0 ? pass.added : TreeRange{1, 1};
    if (meta.rounds == RoundRule::FirstBase && rounds.begin != 0) pass.base = device.no_base();
    if (meta.rounds == RoundRule::Averages) launch.program.parameters.divisor = rounds.end - rounds.begin;
  }
  pass.turn = pass.added.begin % meta.num_outputs;
  if (base == nullptr) return;
  pass.base = base;
  pass.base_stride = meta.num_outputs;
}

}  // namespace forestvm::kernels
