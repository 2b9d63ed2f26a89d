// Explained trees -> the sections of paths, and the code that computes contributions and interactions from them.
#include <forestvm/core/encoder.hpp>

#include "scheduler/layouts/builder.hpp"
#include "scheduler/passes/emit.hpp"

namespace forestvm::scheduler {

void emit_paths(const Model& model, ExplainedForest explained, const RankTable& ranks, ProgramParts& parts) {
  for (std::size_t i = 0; i < explained.nodes.size(); ++i) {
    PathNode& node = explained.nodes[i];
    if (node.split == 0) continue;
    const PathSource& source = explained.sources[i];
    const CodedTest test =
        ranks.find(test_of(model.trees[source.tree], static_cast<std::int32_t>(source.node)));
    node.column = test.column;
    node.code = source.keeps ? kAlwaysLeft : test.code;
  }
  parts.explained_trees = std::move(explained.trees);
  parts.paths = std::move(explained.nodes);
}

std::vector<OutputKind> explained_outputs(const CompileOptions& options) {
  std::vector<OutputKind> outputs;
  if (options.contributions || options.interactions) outputs.push_back(OutputKind::Contributions);
  if (options.interactions) outputs.push_back(OutputKind::Interactions);
  return outputs;
}

std::uint32_t emit_explanation(OutputKind kind, ProgramParts& parts) {
  const auto output = static_cast<std::uint32_t>(kind);
  constexpr std::uint32_t kBlock = 2;  // the register of a block of rows
  const std::uint32_t when = add_instruction(parts, Op::When, {output, 0});
  const std::uint32_t loop = add_instruction(parts, Op::Par, {kBlock, kRowsRegister, kCodeRows, 0});
  if (!parts.columns.empty()) add_instruction(parts, Op::Encode, {kBlock});
  add_instruction(parts, Op::Explain, {kBlock});
  close_block(parts, loop, Op::Par, {kBlock, kRowsRegister, kCodeRows});
  close_block(parts, when, Op::When, {output});
  return add_instruction(parts, Op::Unless, {output, 0});
}

void end_explanation(std::uint32_t unless, ProgramParts& parts) {
  const auto output = static_cast<std::uint32_t>(operands<Op::Unless>(parts.code[unless]).output);
  close_block(parts, unless, Op::Unless, {output});
}

}  // namespace forestvm::scheduler
