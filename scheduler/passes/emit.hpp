// The parts of the pass emit-program: each fills in some of the program's sections.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/internal/program_parts.hpp>

#include "scheduler/explained_forest.hpp"
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

/// The operands of an instruction, in the order of the opcode's row.
using OperandValues = std::vector<std::uint32_t>;

/// Appends an instruction, and returns its pc.
std::uint32_t add_instruction(ProgramParts& parts, Op op, const OperandValues& operands);
/// Closes the block that the instruction at pc `open` opens. `operands` are the opening instruction's, without the
/// partner.
void close_block(ProgramParts& parts, std::uint32_t open, Op op, OperandValues operands);

/// Emits the columns that are derived from features.
void emit_columns(const Model& model, ProgramParts& parts);

/// Appends a plan's code and its walkers. Refuses a plan that needs too many registers or instructions.
Result<void> emit_code(const Lowering& lowering, const PlanNumbers& numbers, ProgramParts& parts);

/// Emits the sections of paths, whose tests `ranks` has.
void emit_paths(const Model& model, ExplainedForest explained, const RankTable& ranks, ProgramParts& parts);

/// Begins the code of a program with the output `kind`, which explained_outputs() lists: emits the block that computes
/// it if the caller asked for it, and opens the block of all other outputs, whose pc it returns. The code is for a GPU
/// if `mapped`.
std::uint32_t emit_explanation(OutputKind kind, bool mapped, ProgramParts& parts);
/// Closes the block that emit_explanation opened at pc `unless`.
void end_explanation(std::uint32_t unless, ProgramParts& parts);

}  // namespace forestvm::scheduler
