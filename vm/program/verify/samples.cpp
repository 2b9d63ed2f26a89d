// The verifier's rules for the targets that leaves keep.
#include <cmath>

#include <forestvm/internal/formatted.hpp>

#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {
namespace {

Result<void> verify_targets(const Program& program) {
  const auto targets = program.targets();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!std::isfinite(targets[i])) return record_error("targets", i, "it is not finite");
    if (i != 0 && targets[i] <= targets[i - 1])
      return record_error("targets", i, "it is not above the record before it");
  }
  const auto samples = program.sample_targets();
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (samples[i] >= targets.size()) return record_error("sample_targets", i, "its target does not exist");
  return {};
}

}  // namespace

Result<void> verify_samples(const Program& program) {
  const auto trees = program.sampled_trees();
  const auto leaves = program.sampled_leaves();
  if (program.targets().empty()) {
    if (trees.empty() && leaves.empty() && program.sample_targets().empty()) return {};
    return refused("targets section", "it is empty, but leaves keep targets");
  }
  FVM_TRY(verify_leaf_lists(program, {trees, leaves, program.sample_targets().size(), "sampled_trees",
                                      "sampled_leaves", "sample_targets"}));
  return verify_targets(program);
}

}  // namespace forestvm::bytecode
