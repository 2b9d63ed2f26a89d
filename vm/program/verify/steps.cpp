#include "vm/program/verify/steps.hpp"

#include <algorithm>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/groups.hpp>
#include <forestvm/internal/program_tools.hpp>

namespace forestvm::bytecode {
namespace {

/// The most steps per node of a path: one for each point of the quadrature.
constexpr std::uint64_t kPathNodeSteps = kMaxPathFeatures / 2;
/// The most further steps of a node when interactions are computed: one for each feature above it and four points.
constexpr std::uint64_t kPathPairSteps =
    std::uint64_t{kMaxPathFeatures} * ((kMaxPathFeatures / 2 + 1 + 3) / 4);
/// The interactions that are written in a step, since most of them are zeros.
constexpr std::uint64_t kInteractionsPerStep = 32;
/// The leaves of other outputs that are passed over in a step when contributions are looked up.
constexpr std::uint64_t kLeavesPerStep = 16;

/// Returns the steps of a walk of one row through a tree: node visits, and columns and slots of tables that
/// are looked into.
template <class View>
std::uint64_t walk_steps(const typename View::Tree& view, const TreeDesc& tree) {
  std::uint64_t steps = tree.depth + std::uint64_t{1};
  if constexpr (requires { &View::lookups; }) steps += View::lookups(view, tree);
  return steps;
}

}  // namespace

std::uint64_t add_capped(std::uint64_t a, std::uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

std::uint64_t multiply_capped(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

GroupCosts costs_of(const Program& program, const GroupDesc& group) {
  const auto trees = trees_of(program, group);
  const GroupData data = group_data(program, group);
  GroupCosts costs;
  costs.before.reserve(trees.size() + 1);
  costs.before.push_back(0);
  for (std::uint32_t t = 0; t < trees.size(); ++t) {
    const std::uint64_t steps = with_view(
        group.layout, [&]<class View>() { return walk_steps<View>(View::tree(data, t), trees[t]); });
    costs.before.push_back(costs.before.back() + steps);
    costs.most = std::max(costs.most, steps);
    costs.reads_codes |= takes_codes(group.layout) && trees[t].depth != 0;
  }
  return costs;
}

std::uint64_t derive_steps(const Program& program) {
  std::uint64_t steps = program.hashed_features().size() + program.key_parts().size() +
                        program.column_terms().size() + program.meta().derived_columns;
  for (const LookupDesc& lookup : program.lookups()) steps += lookup.slot_count;
  return steps;
}

std::uint64_t function_steps(const Program& program) {
  std::uint64_t most = 0;
  for (const LeafFunction& function : program.leaf_functions())
    most = std::max<std::uint64_t>(most, function.term_count);
  return add_capped(program.meta().num_features, multiply_capped(program.meta().num_trees, most + 1));
}

std::uint64_t explain_steps(const Program& program, OutputKind output) {
  const bool pairs = output == OutputKind::Interactions;
  const std::uint64_t width = std::uint64_t{program.meta().num_features} + 1;
  const std::uint64_t written = pairs ? width * width / kInteractionsPerStep + 1 : width;
  const std::uint64_t walked =
      multiply_capped(program.paths().size(), kPathNodeSteps + (pairs ? kPathPairSteps : 0));
  const std::uint64_t passed_over = program.pattern_leaves().size() / kLeavesPerStep;
  const std::uint64_t looked_up = program.pattern_leaves().size() + 2 * program.pattern_tests().size();
  return add_capped(multiply_capped(program.meta().num_outputs, written + passed_over),
                    add_capped(walked, looked_up));
}

namespace {

/// Returns the largest number of records that a row reads in the leaves of all trees, and one step for each tree.
std::uint64_t steps_in_leaves(std::span<const NumberedLeaves> trees, std::span<const std::uint32_t> leaves) {
  std::uint64_t steps = 0;
  for (const NumberedLeaves& tree : trees) {
    std::uint32_t most = 0;
    for (std::uint32_t i = 0; i < tree.leaf_count; ++i)
      most = std::max(most, leaves[tree.first_leaf + i + 1] - leaves[tree.first_leaf + i]);
    steps = add_capped(steps, most + std::uint64_t{1});
  }
  return steps;
}

}  // namespace

std::uint64_t attribute_steps(const Program& program) {
  const ProgramMeta& meta = program.meta();
  return add_capped(std::uint64_t{meta.num_outputs} * (std::uint64_t{meta.num_features} + 1),
                    steps_in_leaves(program.attributed_trees(), program.attributed_leaves()));
}

std::uint64_t quantile_steps(const Program& program) {
  // Each row of a leaf is counted, and its count removed. Then the counts of all targets are gone through.
  return add_capped(program.targets().size(),
                    multiply_capped(2, steps_in_leaves(program.sampled_trees(), program.sampled_leaves())));
}

}  // namespace forestvm::bytecode
