// The verifier's rules for walkers: each walks a group that exists, in a form that targets have, and takes no more
// steps without a leaf check than all trees of its group allow.
#include <algorithm>
#include <bit>
#include <vector>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/groups.hpp>

#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {
namespace {

/// Returns the steps that every tree of a group can take without leaving it.
std::uint32_t safe_steps(const Program& program, const GroupDesc& group) {
  const auto trees = trees_of(program, group);
  const auto by_depth = [](const TreeDesc& a, const TreeDesc& b) { return a.depth < b.depth; };
  return leaves_hold_still(group.layout) ? std::max_element(trees.begin(), trees.end(), by_depth)->depth
                                         : std::min_element(trees.begin(), trees.end(), by_depth)->depth;
}

}  // namespace

Result<void> verify_walkers(const Program& program) {
  const auto walkers = program.walkers();
  if (walkers.size() > kMaxWalkers)
    return refused("walkers section", "{} walkers, at most {}", walkers.size(), kMaxWalkers);
  std::vector<std::uint32_t> most_steps;  // by group, because a file may have many walkers of a large group
  for (const GroupDesc& group : program.groups()) most_steps.push_back(safe_steps(program, group));
  for (std::size_t i = 0; i < walkers.size(); ++i) {
    const WalkerDesc& walker = walkers[i];
    const auto wrong = [&](CText what) { return refused(formatted("walkers section: w{}", i), what); };
    if (walker.group >= program.groups().size()) return wrong(formatted("no group {}", walker.group));
    if (walker.end > WalkEnd::Exact || walker.order > WalkOrder::TreesOuter || walker.atomic > 1 ||
        walker.reserved != 0)
      return wrong("unknown end, order or reserved bits");
    if (!std::has_single_bit(walker.interleaved_trees) || !std::has_single_bit(walker.interleaved_rows) ||
        walker.interleaved_trees * walker.interleaved_rows > static_cast<int>(kMaxInterleave))
      return wrong(formatted("no walker interleaves {} x {} walks", walker.interleaved_trees,
                             walker.interleaved_rows));
    const std::uint32_t most = most_steps[walker.group];
    if (walker.steps > most)
      return wrong(formatted("{} steps without a leaf check in trees of {}", walker.steps, most));
  }
  return {};
}

}  // namespace forestvm::bytecode
