// See outputs.hpp.
#include "vm/program/verify/outputs.hpp"

#include <forestvm/core/bytecode.hpp>

namespace forestvm::bytecode {
namespace {

/// Returns whether a program has members that say how sure it is, or numbers that they give.
bool has_uncertainty(const Program& program, OutputKind output) {
  const auto all = program.uncertainty();
  return !all.empty() && (output == OutputKind::Uncertainty || all[0].rule != UncertaintyRule::Trees);
}

}  // namespace

bool can_explain(const Program& program, OutputKind output) {
  const std::uint8_t contributions = program.meta().contributions;
  return output == OutputKind::Contributions ? contributions > 0
                                             : output == OutputKind::Interactions && contributions > 1;
}

bool has_output(const Program& program, OutputKind output) {
  if (output == OutputKind::ApproxContributions) return !program.attribution_base().empty();
  if (output == OutputKind::Quantile) return !program.targets().empty();
  if (explains_scores(output)) return can_explain(program, output);
  if (output == OutputKind::VirtEnsembles || output == OutputKind::Uncertainty)
    return has_uncertainty(program, output);
  return !is_of_trees(output) || !program.round_begins().empty();
}

}  // namespace forestvm::bytecode
