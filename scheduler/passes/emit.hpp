// The parts of the pass emit-program: each fills in some of the program's sections.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/lowering.hpp"
#include "scheduler/rank_table.hpp"

namespace forestvm::scheduler {

/// The numbers that a plan's groups and accumulators have in the program, by the plan's own numbers.
struct PlanNumbers {
  std::vector<std::uint32_t> groups;
  std::vector<std::uint32_t> accumulators;
};

/// Emits the nodes of all plans, the accumulators, and the shapes of tiles; returns their numbers, plan by
/// plan. Refuses plans that do not agree on the order of trees or on tiles, or need too many accumulators.
Result<std::vector<PlanNumbers>> emit_forest(const std::vector<Lowering>& plans, const RankTable& ranks,
                                             ProgramParts& parts);

/// Emits the columns that are derived from features.
void emit_columns(const Model& model, ProgramParts& parts);

/// Appends a plan's code and its walkers. Refuses a plan that needs too many registers or instructions.
Result<void> emit_code(const Lowering& lowering, const PlanNumbers& numbers, ProgramParts& parts);

}  // namespace forestvm::scheduler
