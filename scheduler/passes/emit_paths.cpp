// Explained trees -> the sections of paths, and the code that computes contributions from them.
#include <forestvm/core/encoder.hpp>

#include "scheduler/layouts/builder.hpp"
#include "scheduler/passes/emit.hpp"

namespace forestvm::scheduler {
namespace {

constexpr auto kContributions = static_cast<std::uint32_t>(OutputKind::Contributions);

}  // namespace

void emit_paths(const Model& model, ExplainedForest explained, const RankTable& ranks, ProgramParts& parts) {
  for (std::size_t i = 0; i < explained.nodes.size(); ++i) {
    PathNode& node = explained.nodes[i];
    if (node.split == 0) continue;
    const PathSource& source = explained.sources[i];
    const CodedTest test =
        ranks.find(test_of(model.trees[source.tree], static_cast<std::int32_t>(source.node)));
    node.column = test.column;
    node.code = test.code;
  }
  parts.explained_trees = std::move(explained.trees);
  parts.paths = std::move(explained.nodes);
}

std::uint32_t emit_explanations(ProgramParts& parts) {
  constexpr std::uint32_t kBlock = 2;  // the register of a block of rows
  const std::uint32_t when = add_instruction(parts, Op::When, {kContributions, 0});
  const std::uint32_t loop = add_instruction(parts, Op::Par, {kBlock, kRowsRegister, kCodeRows, 0});
  if (!parts.columns.empty()) add_instruction(parts, Op::Encode, {kBlock});
  add_instruction(parts, Op::Explain, {kBlock});
  close_block(parts, loop, Op::Par, {kBlock, kRowsRegister, kCodeRows});
  close_block(parts, when, Op::When, {kContributions});
  return add_instruction(parts, Op::Unless, {kContributions, 0});
}

void end_explanations(std::uint32_t unless, ProgramParts& parts) {
  close_block(parts, unless, Op::Unless, {kContributions});
}

}  // namespace forestvm::scheduler
