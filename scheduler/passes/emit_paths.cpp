// Explained trees -> the sections of paths, and the code that computes contributions and interactions from them.
#include <algorithm>
#include <span>
#include <vector>

#include <forestvm/core/encoder.hpp>

#include "scheduler/layouts/builder.hpp"
#include "scheduler/passes/emit.hpp"

namespace forestvm::scheduler {

namespace {

/// Returns the tests on a way: the codes of each column with which all of its splits are passed. None if no code passes
/// the splits of a column.
std::vector<PatternTest> tests_of(const Model& model, const RankTable& ranks,
                                  std::span<const PatternStep> way) {
  std::vector<PatternTest> tests;
  for (const PatternStep& step : way) {
    const CodedTest coded =
        ranks.find(test_of(model.trees[step.source.tree], static_cast<std::int32_t>(step.source.node)));
    auto test = std::ranges::find(tests, coded.column, &PatternTest::column);
    if (test == tests.end()) {
      const bool adds = std::ranges::find(tests, step.bit, &PatternTest::bit) == tests.end();
      test = tests.insert(
          test, {coded.column, step.feature, 0, UINT8_MAX, step.bit, static_cast<std::uint8_t>(adds)});
    }
    if (step.left)
      test->high = std::min(test->high, coded.code);
    else if (coded.code < test->high)
      test->low = std::max(test->low, static_cast<std::uint8_t>(coded.code + 1));
    else
      return {};
    if (test->low > test->high) return {};
  }
  return tests;
}

/// Emits the leaves whose contributions are looked up. A way whose splits contradict each other contributes nothing.
void emit_patterns(const Model& model, const ExplainedForest& explained, const RankTable& ranks,
                   ProgramParts& parts) {
  std::span<const PatternStep> steps = explained.steps;
  std::span<const double> numbers = explained.numbers;
  for (PatternLeaf leaf : explained.leaves) {
    const std::vector<PatternTest> tests = tests_of(model, ranks, steps.first(leaf.test_count));
    steps = steps.subspan(leaf.test_count);
    const auto table = numbers.first(std::size_t{2} << leaf.features);
    numbers = numbers.subspan(table.size());
    if (tests.empty()) continue;
    leaf.test_count = static_cast<std::uint32_t>(tests.size());
    parts.pattern_leaves.push_back(leaf);
    parts.pattern_tests.insert(parts.pattern_tests.end(), tests.begin(), tests.end());
    parts.pattern_numbers.insert(parts.pattern_numbers.end(), table.begin(), table.end());
  }
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
  emit_patterns(model, explained, ranks, parts);
  parts.explained_trees = std::move(explained.trees);
  parts.paths = std::move(explained.nodes);
}

std::uint32_t emit_explanation(OutputKind kind, bool mapped, ProgramParts& parts) {
  const auto output = static_cast<std::uint32_t>(kind);
  const std::uint32_t when = add_instruction(parts, Op::When, {output, 0});
  if (mapped) {
    if (!parts.columns.empty()) add_instruction(parts, Op::Encode, {kRowsRegister});
    add_instruction(parts, Op::Explain, {kRowsRegister});
    close_block(parts, when, Op::When, {output});
    return add_instruction(parts, Op::Unless, {output, 0});
  }
  constexpr std::uint32_t kBlock = 2;  // the register of a block of rows
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
