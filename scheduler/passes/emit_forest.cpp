// Tiled forests -> nodes, tree records and leaf numbers; the accumulators of all plans in one table.
#include <algorithm>
#include <utility>
#include <vector>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "scheduler/layouts/builder.hpp"
#include "scheduler/passes/emit.hpp"

namespace forestvm::scheduler {
namespace {

/// Moves records behind those of earlier groups. The first group's, often all of them, are not copied.
template <class T>
void move_behind(std::vector<T>& records, std::vector<T>& more) {
  if (records.empty())
    records = std::move(more);
  else
    records.insert(records.end(), more.begin(), more.end());
}

void emit_group(const TreeGroup& group, BuiltGroup& built, ProgramParts& parts) {
  GroupDesc desc{};
  desc.layout = group.layout;
  desc.tile_size = static_cast<std::uint8_t>(group.tiling.size);
  desc.tree_begin = group.tree_begin;
  desc.tree_end = group.tree_end;
  desc.first_tree = static_cast<std::uint32_t>(parts.trees.size());
  parts.nodes.resize((parts.nodes.size() + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment);
  desc.node_offset = parts.nodes.size();
  desc.node_count = built.node_count;
  desc.leaf_count = built.leaf_count;
  desc.first_number = parts.leaf_numbers.size();
  parts.groups.push_back(desc);
  move_behind(parts.trees, built.trees);
  move_behind(parts.nodes, built.nodes);
  move_behind(parts.leaf_numbers, built.numbers);
  move_behind(parts.wide_leaves, built.wide_leaves);
}

/// Emits each group once, however many plans have it.
Result<void> emit_groups(const std::vector<Lowering>& plans, const RankTable& ranks, ProgramParts& parts,
                         std::vector<PlanNumbers>& numbers) {
  std::vector<TreeGroup> emitted;
  for (std::size_t p = 0; p < plans.size(); ++p)
    for (const TreeGroup& group : plans[p].forest.groups) {
      const auto same = std::find(emitted.begin(), emitted.end(), group);
      numbers[p].groups.push_back(static_cast<std::uint32_t>(same - emitted.begin()));
      if (same != emitted.end()) continue;
      Result<BuiltGroup> built = build(plans[p].forest, group, ranks);
      if (!built.ok())
        return refused("schedule", "layout {}: {}", name_of(group.layout), built.error().message);
      emit_group(group, *built, parts);
      emitted.push_back(group);
    }
  return {};
}

/// Checks that the plans agree on the order of trees: a program has one.
Result<void> check_plans(const std::vector<Lowering>& plans) {
  for (const Lowering& plan : plans)
    if (plan.forest.order != plans.front().forest.order) {
      const Lowering& ordering = plan.loops.program.order ? plan : plans.front();
      return ordering.refuse(ordering.loops.program.order->directive, "plans must have one order of trees");
    }
  return {};
}

bool has_tiles(const Lowering& plan) {
  const auto tiled = [](const TreeGroup& group) { return group.tiling.size > 1; };
  return std::any_of(plan.forest.groups.begin(), plan.forest.groups.end(), tiled);
}

/// Emits the plans' accumulators. All plans share a0; plans whose other accumulators are equal share them, too.
Result<void> emit_accumulators(const std::vector<Lowering>& plans, ProgramParts& parts,
                               std::vector<PlanNumbers>& numbers) {
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const auto& mine = plans[p].nest.accumulators;
    std::vector<std::uint32_t>& number = numbers[p].accumulators;
    std::vector<AccumulatorDesc> wanted;
    // Accumulators refer to each other, so a plan shares all of another plan's accumulators or none.
    const auto number_from = [&](std::uint32_t first) {
      number.assign(mine.size(), 0);
      for (std::uint32_t i = 1; i < mine.size(); ++i) number[i] = first + i - 1;
      wanted.clear();
      for (std::uint32_t i = 0; i < mine.size(); ++i) {
        const auto iterations = static_cast<std::uint32_t>(mine[i].iterations);
        const std::uint32_t copies = mine[i].parent == i ? 1 : iterations * wanted[mine[i].parent].copies;
        wanted.push_back(
            {number[mine[i].parent], iterations, copies, number[mine[i].stored_in], mine[i].kind, {}});
      }
    };
    number_from(0);
    if (parts.accumulators.empty()) parts.accumulators.push_back(wanted.front());
    const auto count = static_cast<std::uint32_t>(parts.accumulators.size());
    std::uint32_t first = 1;
    for (; first < count; ++first) {
      number_from(first);
      if (wanted.size() - 1 <= count - first &&
          std::equal(wanted.begin() + 1, wanted.end(), parts.accumulators.begin() + first))
        break;
    }
    if (first < count || mine.size() == 1) continue;
    number_from(count);
    parts.accumulators.insert(parts.accumulators.end(), wanted.begin() + 1, wanted.end());
    if (parts.accumulators.size() > kAccumulators)
      return refused("schedule", "its plans need more than {} accumulators", kAccumulators);
  }
  return {};
}

}  // namespace

Result<std::vector<PlanNumbers>> emit_forest(const std::vector<Lowering>& plans, const RankTable& ranks,
                                             ProgramParts& parts) {
  std::vector<PlanNumbers> numbers(plans.size());
  FVM_TRY(check_plans(plans));
  if (std::any_of(plans.begin(), plans.end(), has_tiles)) parts.tile_shapes = plans.front().forest.shapes();
  FVM_TRY(emit_accumulators(plans, parts, numbers));
  FVM_TRY(emit_groups(plans, ranks, parts, numbers));
  return numbers;
}

}  // namespace forestvm::scheduler
