// Prints a program as assembly text: a table of walkers, groups and accumulators, then the code, one
// instruction a line, blocks indented. It is driven by the rows of opcodes.def: no opcode is known by name
// here. assemble.cpp reads the text back.
#include <bit>
#include <string>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/program.hpp>

#include "vm/program/operand_text.hpp"

namespace forestvm {
namespace {

std::string instruction_text(const Inst& inst) {
  std::string text = info(inst.op).text;
  for_each_operand(inst, [&](unsigned i, OperandKind kind, std::uint32_t value) {
    text += (i == 0 ? " " : ", ") + bytecode::operand_text(kind, value);
  });
  return text;
}

std::string walker_text(const WalkerDesc& walker, std::size_t) {
  std::string text = formatted("g{}", walker.group);
  text += walker.order == WalkOrder::RowsOuter ? ", rows outer" : ", trees outer";
  text += formatted(", interleave {} trees x {} rows", walker.interleaved_trees, walker.interleaved_rows);
  if (walker.atomic != 0) text += ", atomic";
  const std::string steps = std::to_string(walker.steps);
  if (walker.end == WalkEnd::Exact) return formatted("{}, exactly {} steps", text, steps);
  return text +
         (walker.steps == 0 ? ", until a leaf" : formatted(", {} steps unchecked, then until a leaf", steps));
}

std::string group_text(const GroupDesc& group, std::size_t) {
  std::string text(name_of(group.layout));
  if (group.tile_size > 1) text += formatted(", tiles of {}", group.tile_size);
  return formatted("{}, trees {} to {}, {}{}", text, group.tree_begin, group.tree_end, group.node_count,
                   group.tile_size > 1 ? " tiles" : " nodes");
}

std::string accumulator_text(const AccumulatorDesc& accumulator, std::size_t number) {
  const std::string kind(name_of(accumulator.kind));
  if (accumulator.parent == number) return kind;
  std::string text = formatted("{}, private copy of a{} for each of {} iterations", kind, accumulator.parent,
                               accumulator.iterations);
  if (accumulator.stored_in != number) text += formatted(", in a{}", accumulator.stored_in);
  return text;
}

/// Describes a column of membership codes. `column` is its number among all columns.
std::string category_text(const Program& program, const CategoryColumn& category, std::size_t column) {
  const auto words = program.category_words().subspan(category.first_word, category.word_count);
  std::size_t members = category.listed != 0 ? words.size() : 0;
  for (const std::uint32_t word : words)
    if (category.listed == 0) members += static_cast<std::size_t>(std::popcount(word));
  const bool right = program.columns()[column].missing_highest != 0;
  return formatted("f{} in a set of {}{}, missing {}", category.feature, members,
                   (category.fractions != 0 ? ", fractions above -1 are 0" : ""), right ? "right" : "left");
}

std::string header_text(const Program& program) {
  const ProgramMeta& meta = program.meta();
  return formatted("; program for {} features, {} trees, {}{}; contract {}{}\n", meta.num_features,
                   meta.num_trees, meta.num_outputs, meta.num_outputs == 1 ? " output" : " outputs",
                   name_of(meta.contract),
                   (meta.sums_in_model_order ? ", sums in the model's order"
                                             : ", sums in another order than the model's"));
}

}  // namespace

std::string Program::disassemble() const {
  std::string text = header_text(*this);
  const auto table = [&](const char* prefix, const auto& records, auto describe, std::size_t first) {
    for (std::size_t i = first; i < records.size(); ++i)
      text += formatted("; {}{}: {}\n", prefix, i, describe(records[i], i));
  };
  table("g", groups(), group_text, 0);
  table("w", walkers(), walker_text, 0);
  table("a", accumulators(), accumulator_text, 1);
  const std::vector<std::string> derived = derived_column_texts(*this);
  for (std::size_t i = 0; i < derived.size(); ++i)
    text += formatted("; f{}: {}\n", meta().num_features + i, derived[i]);
  if (!leaf_functions().empty())
    text += formatted("; leaves are {} linear functions of the row, {} terms in all\n",
                      leaf_functions().size(), leaf_terms().size());
  if (meta().contributions != 0)
    text += formatted("; contributions {}from the paths of {} trees, {} nodes\n",
                      meta().contributions > 1 ? "and interactions " : "", explained_trees().size(),
                      paths().size());
  if (!background().empty())
    text += formatted("; contributions against a background of {} rows\n", background()[0]);
  if (!attribution_base().empty())
    text += formatted("; approximate contributions from {} attributions of leaves\n", attributions().size());
  if (!targets().empty()) text += formatted("; quantiles of {} distinct targets\n", targets().size());
  if (!round_begins().empty())
    text += formatted("; leaves are kept for outputs of trees and {} rounds\n", round_begins().size() - 1);
  if (!uncertainty().empty())
    text += formatted("; uncertainty by rule {}\n", static_cast<int>(uncertainty()[0].rule));
  const std::size_t ranks = columns().size() - category_columns().size();
  for (std::size_t i = 0; i < category_columns().size(); ++i)
    text += formatted("; column {}: {}\n", ranks + i, category_text(*this, category_columns()[i], ranks + i));
  std::size_t depth = 0;
  for (std::size_t pc = 0; pc < code().size(); ++pc) {
    const Inst& inst = code()[pc];
    if (info(inst.op).role == OpRole::Close) --depth;
    std::string at = std::to_string(pc);
    text += formatted("{}{}{}{}\n", std::string(at.size() < 4 ? 4 - at.size() : 0, ' '), at,
                      std::string(2 + 2 * depth, ' '), instruction_text(inst));
    if (info(inst.op).role == OpRole::Open) ++depth;
  }
  return text;
}

}  // namespace forestvm
