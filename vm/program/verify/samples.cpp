// The verifier's rules for the targets that leaves keep.
#include <algorithm>
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
  if (trees.size() != program.meta().num_trees)
    return refused("sampled_trees section", "{} records, but {} trees", trees.size(),
                   program.meta().num_trees);
  if (leaves.empty() || leaves[0] != 0 || leaves.back() != program.sample_targets().size())
    return refused("sampled_leaves section", "it does not begin and end with the sample_targets");
  const auto descends = std::is_sorted_until(leaves.begin(), leaves.end());
  if (descends != leaves.end())
    return record_error("sampled_leaves", static_cast<std::size_t>(descends - leaves.begin()),
                        "it is below the record before it");
  for (std::size_t t = 0; t < trees.size(); ++t)
    if (std::uint64_t{trees[t].first_leaf} + trees[t].leaf_count >= leaves.size())
      return record_error("sampled_trees", t, "its leaves leave the sampled_leaves section");
  return verify_targets(program);
}

}  // namespace forestvm::bytecode
