// Explained trees -> the sections of paths, and the code that computes contributions and interactions from them.
#include <algorithm>

#include <forestvm/core/encoder.hpp>

#include "scheduler/layouts/builder.hpp"
#include "scheduler/passes/emit.hpp"

namespace forestvm::scheduler {
namespace {

std::uint32_t add(ProgramParts& parts, Op op, std::initializer_list<std::uint32_t> operands) {
  std::uint32_t values[kMaxOperands] = {};
  std::copy(operands.begin(), operands.end(), values);
  parts.code.push_back(encode(op, values));
  return static_cast<std::uint32_t>(parts.code.size() - 1);
}

}  // namespace

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
  const std::uint32_t when = add(parts, Op::When, {output, 0});
  const std::uint32_t loop = add(parts, Op::Par, {kBlock, kRowsRegister, kCodeRows, 0});
  if (!parts.columns.empty()) add(parts, Op::Encode, {kBlock});
  add(parts, Op::Explain, {kBlock});
  const std::uint32_t loop_end = add(parts, Op::End, {loop});
  const std::uint32_t when_end = add(parts, Op::End, {when});
  const std::uint32_t loop_operands[kMaxOperands] = {kBlock, kRowsRegister, kCodeRows, loop_end};
  const std::uint32_t when_operands[kMaxOperands] = {output, when_end};
  parts.code[loop] = encode(Op::Par, loop_operands);
  parts.code[when] = encode(Op::When, when_operands);
  return add(parts, Op::Unless, {output, 0});
}

Result<void> end_explanation(std::uint32_t unless, ProgramParts& parts) {
  if (std::any_of(parts.code.begin(), parts.code.end(), [](const Inst& inst) { return inst.op == Op::Map; }))
    return refused("schedule", "contributions are computed on the host, and its loops are mapped to a GPU");
  const std::uint32_t end = add(parts, Op::End, {unless});
  const auto output = static_cast<std::uint32_t>(operands<Op::Unless>(parts.code[unless]).output);
  const std::uint32_t values[kMaxOperands] = {output, end};
  parts.code[unless] = encode(Op::Unless, values);
  return {};
}

}  // namespace forestvm::scheduler
