// See device_calls.hpp.
#include "kernels/backend/device_calls.hpp"

#include <algorithm>

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
      return program.meta().contributions != 0 && program.background().empty();
    case OutputKind::Trees:
      return !program.round_begins().empty();
    case OutputKind::Staged:
      return !program.round_begins().empty() && program.meta().rounds != RoundRule::None;
    case OutputKind::Interactions:
    case OutputKind::ApproxContributions:
    case OutputKind::VirtEnsembles:
    case OutputKind::Uncertainty:
    case OutputKind::Quantile:
      return false;
  }
  return false;
}

Result<void> check_device_call(const Program& program, OutputKind output, const CallOptions& options,
                               bool on_device) {
  if (!has_on_device(program, output))
    return refused(formatted("output {}", name_of(output)), "is computed by the host only");
  if (options.base_margin.data != nullptr && on_device)
    return refused("base margins", "are taken with rows of the host only, not with rows in a GPU's memory");
  if (!options.features.empty()) return refused("features of a call", "are chosen on the host only");
  if (!options.rounds) return {};
  if (output == OutputKind::Contributions)
    return refused("rounds of a call", "are chosen for contributions on the host only");
  if (!counts_as_model(program) && !keeps_all_leaves(program))
    return refused("rounds of a call",
                   "the program adds trees in another order than the model's, from which a GPU chooses none");
  return {};
}

void set_options(const Program& program, const DeviceProgram& device, const LaunchOptions& options,
                 const double* margins, Launch& launch) {
  const ProgramMeta& meta = program.meta();
  LaunchPass& pass = launch.pass;
  pass.base = device.base();
  pass.walked = pass.added = {0, meta.num_trees};
  pass.every = options.every;
  const auto begins = program.round_begins();
  if (!begins.empty()) pass.end_round = static_cast<std::uint32_t>(begins.size() - 1);
  if (options.rounds) {
    const Rounds rounds = *options.rounds;
    pass.first_round = rounds.begin;
    pass.end_round = rounds.end;
    pass.added = {begins[rounds.begin], begins[rounds.end]};
    // Otherwise all trees are walked, and those of the rounds are added.
    if (device.counts_as_model()) pass.walked = pass.added;
    if (meta.rounds == RoundRule::FirstBase && rounds.begin != 0) pass.base = device.no_base();
    if (meta.rounds == RoundRule::Averages) launch.program.parameters.divisor = rounds.end - rounds.begin;
  }
  pass.turn = pass.added.begin % meta.num_outputs;
  if (margins == nullptr) return;
  pass.base = margins;
  pass.base_stride = meta.num_outputs;
}

}  // namespace forestvm::kernels
