// The instruction set: the rows against encode, operand access, the disassembler and the page that people
// read. Everything here loops over the rows, so a new opcode is covered by its row.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/names.hpp>

#include "small_program.hpp"
#include "tests/support/golden.hpp"

namespace forestvm::test {
namespace {

using enum OperandKind;

constexpr Op kAllOps[] = {
#define FVM_OPCODE(Name, text, role, operands, meaning) Op::Name,
#include <forestvm/core/opcodes.def>
};

/// Different values for all operands, the largest that fit.
std::vector<std::uint32_t> distinct_values(Op op) {
  std::vector<std::uint32_t> values;
  for (unsigned i = 0; i < info(op).operands.count; ++i) {
    const bool is_small = info(info(op).operands.kinds[i]).size == OperandSize::Small;
    values.push_back(is_small ? 255 - i : UINT32_MAX - i);
  }
  return values;
}

TEST(Isa, RowsAreInOrderAndTextsAreUnique) {
  std::set<std::string> texts;
  for (std::size_t i = 0; i < kOpCount; ++i) {
    EXPECT_EQ(info(kAllOps[i]).op, kAllOps[i]);
    EXPECT_EQ(static_cast<std::size_t>(kAllOps[i]), i);
    EXPECT_TRUE(known(kAllOps[i]));
    EXPECT_TRUE(texts.insert(info(kAllOps[i]).text).second) << info(kAllOps[i]).text;
  }
  EXPECT_EQ(std::size(kAllOps), kOpCount);
  for (unsigned byte = kOpCount; byte < 256; ++byte) EXPECT_FALSE(known(static_cast<Op>(byte)));
}

TEST(Isa, EveryRowFitsAnInstruction) {
  for (const Op op : kAllOps) {
    unsigned small = 0, wide = 0;
    for (unsigned i = 0; i < info(op).operands.count; ++i)
      ++(info(info(op).operands.kinds[i]).size == OperandSize::Small ? small : wide);
    EXPECT_LE(small, kSmallOperands) << info(op).text;
    EXPECT_LE(wide, kWideOperands) << info(op).text;
  }
}

TEST(Isa, OperandsRoundTrip) {
  for (const Op op : kAllOps) {
    const std::vector<std::uint32_t> values = distinct_values(op);
    const Inst inst = encode(op, values.data());
    EXPECT_EQ(inst.op, op);
    std::vector<std::uint32_t> seen;
    for_each_operand(inst, [&](unsigned i, OperandKind kind, std::uint32_t value) {
      EXPECT_EQ(i, seen.size());
      EXPECT_EQ(kind, info(op).operands.kinds[i]);
      seen.push_back(value);
    });
    EXPECT_EQ(seen, values) << info(op).text;
  }
}

TEST(Isa, FieldsThatARowDoesNotListStayZero) {
  for (const Op op : kAllOps) {
    const Inst inst = encode(op, distinct_values(op).data());
    unsigned zeros = 0;
    for (const std::uint8_t byte : inst.small) zeros += byte == 0;
    for (const std::uint32_t word : inst.wide) zeros += word == 0;
    EXPECT_EQ(zeros, kMaxOperands - info(op).operands.count) << info(op).text;
  }
}

/// What operand<op, kind>() gives, for the opcode's own operands.
template <Op op, unsigned index>
void expect_operand_agrees() {
  if constexpr (index < info(op).operands.count) {
    const std::vector<std::uint32_t> values = distinct_values(op);
    constexpr OperandKind kind = info(op).operands.kinds[index];
    EXPECT_EQ((operand<op, kind>(encode(op, values.data()))), values[index]) << info(op).text;
    expect_operand_agrees<op, index + 1>();
  }
}

TEST(Isa, OperandAccessAgreesWithTheRows) {
#define FVM_OPCODE(Name, text, role, operands, meaning) expect_operand_agrees<Op::Name, 0>();
#include <forestvm/core/opcodes.def>
}

TEST(Isa, NamesGoBothWays) {
#define FVM_OUTPUT(Name, text, meaning) EXPECT_EQ(by_name<OutputKind>(text), OutputKind::Name);
#include <forestvm/core/outputs.def>
#define FVM_TRANSFORM(Name, text, meaning) EXPECT_EQ(by_name<Transform>(text), Transform::Name);
#include <forestvm/core/transforms.def>
#define FVM_CLASS_RULE(Name, text, meaning) EXPECT_EQ(by_name<ClassRule>(text), ClassRule::Name);
#include <forestvm/core/class_rules.def>
#define FVM_LAYOUT(Name, text, View, meaning) EXPECT_EQ(by_name<Layout>(text), Layout::Name);
#include <forestvm/core/layouts.def>
  EXPECT_FALSE(by_name<Transform>("no such transform"));
}

TEST(Isa, PageIsTheCheckedInOne) {
  support::expect_golden(std::string(FORESTVM_SOURCE_DIR) + "/vm/bytecode/ISA.md", isa_page());
}

/// A program by hand that holds every opcode.
ProgramParts every_opcode() {
  ProgramParts parts = parts_of(compiled(small_forest({.trees = 4, .outputs = 2}), "layout(tree, sparse)"));
  parts.accumulators = {{0, 1, 1}, {0, 2, 2}};
  parts.walkers = {{0, 0, WalkEnd::UntilLeaf, WalkOrder::RowsOuter, 1, 1, 0}};
  const auto add = [&](Op op, std::vector<std::uint32_t> values) {
    parts.code.push_back(encode(op, values.data()));
  };
  parts.code.clear();
  add(Op::Par, {2, 0, 8, 22});
  add(Op::Zero, {0, 2});
  add(Op::Slice, {3, 1, 0, 2});
  add(Op::For, {4, 3, 1, 5});
  add(Op::Walk, {0, 4, 2, 0});
  add(Op::End, {3});
  add(Op::Slice, {5, 1, 2, 4});
  add(Op::Par, {6, 5, 1, 10});
  add(Op::Privatize, {1, 6, 2});
  add(Op::Walk, {1, 6, 2, 0});
  add(Op::End, {7});
  add(Op::ReduceDim, {0, 1, 2, 7});
  add(Op::AddBase, {0, 2});
  add(Op::When, {static_cast<std::uint32_t>(OutputKind::Value), 16});
  add(Op::Transform, {0, 2, static_cast<std::uint32_t>(Transform::Softmax)});
  add(Op::Store, {0, 2});
  add(Op::End, {13});
  add(Op::When, {static_cast<std::uint32_t>(OutputKind::Class), 19});
  add(Op::Label, {0, 2, static_cast<std::uint32_t>(ClassRule::Argmax)});
  add(Op::End, {17});
  add(Op::Init, {0, 2});
  add(Op::Store, {0, 2});
  add(Op::End, {0});
  add(Op::Halt, {});
  return parts;
}

TEST(Isa, DisassemblyOfEveryOpcode) {
  const ProgramParts parts = every_opcode();
  std::set<Op> used;
  for (const Inst& inst : parts.code) used.insert(inst.op);
  EXPECT_EQ(used.size(), kOpCount) << "a new opcode belongs into this test";
  const auto program = encode_program(parts);
  ASSERT_TRUE(program.ok()) << program.error().text();
  support::expect_golden(std::string(FORESTVM_SOURCE_DIR) + "/tests/vm/every_opcode.txt",
                         program->disassemble());
}

}  // namespace
}  // namespace forestvm::test
