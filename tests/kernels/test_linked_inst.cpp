// Linked instructions: every operand of a program's instruction reaches its linked form or is left out by
// name, and no field is written over another.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <forestvm/compile.hpp>

#include "kernels/link/cut_phases.hpp"
#include "kernels/link/linked_inst.hpp"
#include "support/small_models.hpp"

namespace forestvm::kernels::test_linked_inst {
namespace {

/// Returns an instruction whose operands are numbered from 1.
Inst numbered(const OpInfo& row) {
  std::uint32_t values[kMaxOperands];
  for (unsigned i = 0; i < kMaxOperands; ++i) values[i] = i + 1;
  return pack(row.op, values);
}

std::map<LinkedField, std::uint32_t> fields_of(const LinkedInst& inst) {
  std::map<LinkedField, std::uint32_t> fields;
  for_each_field(inst, [&](LinkedField field, std::uint32_t value) { fields.emplace(field, value); });
  return fields;
}

TEST(LinkedInst, KeepsEveryOperandOrLeavesItOutByName) {
  std::map<Op, std::set<OperandKind>> left_out;
  for (const OpInfo& row : bytecode_rows::kOpInfo) {
    if (!is_linked(row.op)) continue;
    const LinkedInst kept = keep_operands(numbered(row));
    EXPECT_EQ(kept.op, row.op);
    auto fields = fields_of(kept);
    for (unsigned i = 0; i < row.operands.count; ++i) {
      const auto field = fields.find(field_of(row.operands.kinds[i]));
      if (field == fields.end()) {
        left_out[row.op].insert(row.operands.kinds[i]);
        continue;
      }
      EXPECT_EQ(field->second, i + 1) << row.text << ", operand " << i;
      fields.erase(field);
    }
    for (const auto& [field, value] : fields) EXPECT_EQ(value, 0u) << row.text;  // what linking adds
  }
  const std::map<Op, std::set<OperandKind>> expected = {
      {Op::CacheRows, {OperandKind::Loop, OperandKind::Ahead}},
      {Op::CacheTrees, {OperandKind::Loop}},
      {Op::ReduceDim, {OperandKind::Loop, OperandKind::Width}},
      {Op::ReduceInplace, {OperandKind::Loop, OperandKind::Width}}};
  EXPECT_EQ(left_out, expected);
}

TEST(LinkedInst, KnowsTheOpcodesThatNoPhaseContains) {
  std::set<Op> resolved;
  for (const OpInfo& row : bytecode_rows::kOpInfo)
    if (!is_linked(row.op)) resolved.insert(row.op);
  EXPECT_EQ(resolved, (std::set{Op::Par, Op::When, Op::Unless, Op::Plan, Op::On}));
}

TEST(LinkedInst, ChangesOneFieldAndNoOther) {
  for (const OpInfo& row : bytecode_rows::kOpInfo) {
    const LinkedInst before = keep_operands(numbered(row));
    for (const auto& [changed, old] : fields_of(before)) {
      LinkedInst after = before;
      set_at(after, position_of(row.op, changed), 77);
      EXPECT_EQ(after.op, row.op);
      auto expected = fields_of(before);
      expected[changed] = 77;
      EXPECT_EQ(fields_of(after), expected) << row.text;
    }
  }
}

TEST(LinkedInst, ReadsWhatItsWriterNamed) {
  LinkedInst loop{Op::For, {}, {}};
  set_linked<Op::For, LinkedField::RangeOut>(loop, 3);
  set_linked<Op::For, LinkedField::RangeIn>(loop, 2);
  set_linked<Op::For, LinkedField::Step>(loop, 0x80000001);
  set_linked<Op::For, LinkedField::Partner>(loop, 9);
  set_linked<Op::For, LinkedField::Iterations>(loop, 5);
  const LoopOperands operands = loop_operands<Op::For>(loop);
  EXPECT_EQ(operands.out, 3u);
  EXPECT_EQ(operands.in, 2u);
  EXPECT_EQ(operands.step, 0x80000001);
  EXPECT_EQ(operands.partner, 9u);
  EXPECT_EQ((linked<Op::For, LinkedField::Iterations>(loop)), 5u);
}

/// Reductions and caches name their loop by its pc in the program, linked ones by its registers and its step.
TEST(LinkedInst, HasTheRegistersOfTheLoopThatAProgramNames) {
  const std::string schedule =
      "tile(batch, b0, b1, 8); tile(tree, t0, t1, 2); reorder(b0, t0, b1, t1); cache(b0); cache(t0); "
      "gpuDimension(b0, grid.x); gpuDimension(t0, block.x)";
  const auto compiled = compile(support::model_of(support::six_trees(), 2), *parse_schedule(schedule));
  ASSERT_TRUE(compiled.ok()) << compiled.error().text();
  const std::span<const Inst> code = compiled->program.code();
  const auto phases = cut_phases(code, {21, 21, OutputKind::Raw});
  ASSERT_TRUE(phases.ok()) << phases.error().text();
  const auto find = [](const auto& instructions, auto... ops) {
    return *std::find_if(instructions.begin(), instructions.end(),
                         [=](const auto& inst) { return ((inst.op == ops) || ...); });
  };
  const auto loop_at = [&](std::uint32_t pc) { return loop_operands(code[pc]); };

  const Inst rows = find(code, Op::CacheRows), trees = find(code, Op::CacheTrees);
  const auto& phase = phases->at(0).code;
  EXPECT_EQ((linked<Op::CacheRows, LinkedField::Rows>(find(phase, Op::CacheRows))),
            loop_at(operand<Op::CacheRows, OperandKind::Loop>(rows)).out);
  EXPECT_EQ((linked<Op::CacheTrees, LinkedField::Trees>(find(phase, Op::CacheTrees))),
            loop_at(operand<Op::CacheTrees, OperandKind::Loop>(trees)).out);

  const Inst reduction = find(code, Op::ReduceInplace, Op::ReduceDim);
  ASSERT_EQ(reduction.op, Op::ReduceDim);
  const LoopOperands loop = loop_at(operand<Op::ReduceDim, OperandKind::Loop>(reduction));
  const ReductionFields fields = reduction_fields<Op::ReduceDim>(find(phase, Op::ReduceDim));
  EXPECT_EQ(fields.reduced, loop.in);
  EXPECT_EQ(fields.step, loop.step);
  EXPECT_EQ(fields.step, 2u);
}

}  // namespace
}  // namespace forestvm::kernels::test_linked_inst
