// The instruction set: the rows against encoding, operand access, the disassembler and the ISA page.
// Everything here loops over the rows, so that a new opcode is tested without changes.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include <forestvm/core/guards.hpp>
#include <forestvm/core/ranges.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/internal/program_tools.hpp>

#include "support/small_models.hpp"
#include "tests/support/golden.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_isa {
namespace {

using enum OperandKind;

constexpr Op kAllOps[] = {
#define FVM_OPCODE(number, Name, text, role, operands, meaning) Op::Name,
#include <forestvm/core/opcodes.def>
};

/// Returns different values for all operands, the largest that fit.
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
    const Inst inst = pack(op, values.data());
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
    const Inst inst = pack(op, distinct_values(op).data());
    unsigned zeros = 0;
    for (const std::uint8_t byte : inst.small) zeros += byte == 0;
    for (const std::uint32_t word : inst.wide) zeros += word == 0;
    EXPECT_EQ(zeros, kMaxOperands - info(op).operands.count) << info(op).text;
  }
}

/// Expects that operand<op, kind>() and operands<op>() give the opcode's own operands.
template <Op op, unsigned index>
void expect_operand_agrees() {
  if constexpr (index < info(op).operands.count) {
    const std::vector<std::uint32_t> values = distinct_values(op);
    constexpr OperandKind kind = info(op).operands.kinds[index];
    const Inst inst = pack(op, values.data());
    EXPECT_EQ((operand<op, kind>(inst)), values[index]) << info(op).text;
    using Type = std::tuple_element_t<index, OperandsOf<op>>;
    EXPECT_EQ(operands<op>(inst).template get<index>(), static_cast<Type>(values[index])) << info(op).text;
    expect_operand_agrees<op, index + 1>();
  }
}

TEST(Isa, OperandAccessAgreesWithTheRows) {
#define FVM_OPCODE(number, Name, text, role, operands, meaning) expect_operand_agrees<Op::Name, 0>();
#include <forestvm/core/opcodes.def>
}

TEST(Isa, OperandsHaveNamesAndTypes) {
  const std::uint32_t values[] = {3, 4, static_cast<std::uint32_t>(Transform::Exp)};
  const auto [accumulator, rows, transform] = operands<Op::Transform>(pack(Op::Transform, values));
  EXPECT_EQ(accumulator, 3u);
  EXPECT_EQ(rows, 4u);
  EXPECT_EQ(transform, Transform::Exp);
  EXPECT_EQ(operands<Op::Transform>(pack(Op::Transform, values)).transform_kind, Transform::Exp);
  static_assert(std::tuple_size_v<OperandsOf<Op::Halt>> == 0);
  static_assert(std::is_same_v<OperandsOf<Op::ReduceDim>, OperandsOf<Op::ReduceInplace>>);
  static_assert(!std::is_same_v<OperandsOf<Op::Store>, OperandsOf<Op::Init>>);
}

TEST(Isa, NamesGoBothWays) {
#define FVM_OUTPUT(number, Name, text, meaning) EXPECT_EQ(by_name<OutputKind>(text), OutputKind::Name);
#include <forestvm/core/outputs.def>
#define FVM_TRANSFORM(number, Name, text, meaning) EXPECT_EQ(by_name<Transform>(text), Transform::Name);
#include <forestvm/core/transforms.def>
#define FVM_CLASS_RULE(number, Name, text, meaning) EXPECT_EQ(by_name<ClassRule>(text), ClassRule::Name);
#include <forestvm/core/class_rules.def>
#define FVM_LAYOUT(number, Name, text, word, View, meaning) EXPECT_EQ(by_name<Layout>(text), Layout::Name);
#include <forestvm/core/layouts.def>
#define FVM_DIMENSION(number, Name, text, meaning) \
  EXPECT_EQ(by_name<LaunchDimension>(text), LaunchDimension::Name);
#include <forestvm/core/dimensions.def>
#define FVM_TARGET_SET(number, Name, text, meaning) EXPECT_EQ(by_name<TargetSet>(text), TargetSet::Name);
#include <forestvm/core/target_sets.def>
#define FVM_REDUCTION_FORM(number, Name, text, meaning) \
  EXPECT_EQ(by_name<ReductionForm>(text), ReductionForm::Name);
#include <forestvm/core/reduction_forms.def>
#define FVM_ACCUMULATOR_KIND(number, Name, text, Element, meaning) \
  EXPECT_EQ(by_name<AccumulatorKind>(text), AccumulatorKind::Name);
#include <forestvm/core/accumulator_kinds.def>
  EXPECT_FALSE(by_name<Transform>("no such transform"));
}

TEST(Isa, PageIsTheCheckedInOne) {
  support::expect_golden(std::string(FORESTVM_SOURCE_DIR) + "/docs/ISA.md", isa_page());
}

/// A call of 8 rows for class numbers, on AVX2.
struct Avx2Call {
  std::uint32_t plan_rows = 8;

  static bool wants(OutputKind output) { return output == OutputKind::Class; }
  static bool runs_on(TargetSet targets) { return contains(targets, CpuTarget::Avx2); }
};

TEST(Isa, GuardsOpenBlocksForSomeCalls) {
  const Avx2Call call;
  const auto is_taken = [&](Op op, std::vector<std::uint32_t> values) {
    values.push_back(71);  // the end of the block is the last operand of every guard
    const GuardedBlock block = guarded_block(pack(op, values.data()), call);
    EXPECT_EQ(block.end, 71u) << info(op).text;
    return block.is_taken;
  };
  EXPECT_TRUE(is_taken(Op::Plan, {1, UINT32_MAX}));
  EXPECT_TRUE(is_taken(Op::Plan, {8, 8}));
  EXPECT_FALSE(is_taken(Op::Plan, {1, 7}));
  EXPECT_FALSE(is_taken(Op::Plan, {9, 100}));
  EXPECT_TRUE(is_taken(Op::On, {static_cast<std::uint32_t>(TargetSet::Avx2Up)}));
  EXPECT_FALSE(is_taken(Op::On, {static_cast<std::uint32_t>(TargetSet::Avx512Up)}));
  const auto wanted = static_cast<std::uint32_t>(OutputKind::Class);
  const auto other = static_cast<std::uint32_t>(OutputKind::Value);
  EXPECT_TRUE(is_taken(Op::When, {wanted}));
  EXPECT_FALSE(is_taken(Op::When, {other}));
  EXPECT_FALSE(is_taken(Op::Unless, {wanted}));
  EXPECT_TRUE(is_taken(Op::Unless, {other}));
  for (const Op op : kAllOps)
    EXPECT_EQ(is_guard(op), info(op).role == OpRole::Open && !is_loop(op)) << info(op).text;
}

/// Assembles a program by hand: blocks are closed where they end.
class ByHand {
 public:
  std::uint32_t add(Op op, std::vector<std::uint32_t> values) {
    values.resize(kMaxOperands);
    code_.push_back(pack(op, values.data()));
    return static_cast<std::uint32_t>(code_.size() - 1);
  }
  std::uint32_t open(Op op, std::vector<std::uint32_t> values) {
    open_.push_back(add(op, std::move(values)));
    return open_.back();
  }
  void close() {
    const std::uint32_t begin = open_.back(), end = add(Op::End, {begin});
    open_.pop_back();
    for_each_operand(code_[begin], [&](unsigned, OperandKind kind, std::uint32_t) {
      const bool second = is_loop(code_[begin].op), third = code_[begin].op == Op::Plan;
      if (kind == OperandKind::Partner) code_[begin].wide[third ? 2 : second ? 1 : 0] = end;
    });
  }
  std::vector<Inst> code() {
    add(Op::Halt, {});
    return code_;
  }

 private:
  std::vector<Inst> code_;
  std::vector<std::uint32_t> open_;
};

std::uint32_t number(OutputKind kind) { return static_cast<std::uint32_t>(kind); }

/// Returns what the code of every_opcode() needs besides itself.
ProgramParts parts_for_every_opcode() {
  Model model = small_forest({.trees = 4, .outputs = 2});
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  CompileOptions options;
  options.approx_contributions = true;
  ProgramParts parts = parts_of(compiled(model, "encode(u8)", options));
  using enum AccumulatorKind;
  parts.meta.contributions = 1;
  parts.round_begins = {0, 2, 4};
  keep_targets(parts);
  parts.accumulators = {{0, 1, 1, 0, F32, {}},
                        {0, 2, 2, 2, F32, {}},
                        {1, 1, 2, 2, F32, {}},
                        {3, 1, 1, 3, Exact64, {}},
                        {4, 1, 1, 4, PerTree, {}}};
  parts.walkers = {{0, 0, WalkEnd::UntilLeaf, WalkOrder::RowsOuter, 1, 1, 0, 0}};
  return parts;
}

/// Returns a program that contains every opcode.
ProgramParts every_opcode() {
  ProgramParts parts = parts_for_every_opcode();
  ByHand hand;
  const auto vector = static_cast<std::uint32_t>(ReductionForm::Vector);
  hand.open(Op::Plan, {1, UINT32_MAX});
  hand.add(Op::Encode, {0});
  hand.open(Op::Unless, {number(OutputKind::Leaf)});
  const std::uint32_t rows =
      hand.open(Op::Map, {2, 0, static_cast<std::uint32_t>(LaunchDimension::GridX), 8});
  hand.add(Op::CacheRows, {rows, 1});
  hand.add(Op::Zero, {0, 2});
  hand.add(Op::Slice, {3, 1, 0, 2});
  const std::uint32_t trees = hand.open(Op::For, {4, 3, 1});
  hand.add(Op::CacheTrees, {trees, 2, 0});
  hand.add(Op::Walk, {0, 4, 2, 0, 1});
  hand.close();
  hand.add(Op::Slice, {5, 1, 2, 4});
  const std::uint32_t outer = hand.open(Op::Par, {6, 5, 1});
  hand.add(Op::Privatize, {1, 6, 2});
  const std::uint32_t inner = hand.open(Op::Par, {7, 6, 1});
  hand.add(Op::Privatize, {2, 7, 2});
  hand.add(Op::Walk, {2, 7, 2, 0, 1});
  hand.close();
  hand.add(Op::ReduceInplace, {1, 2, 2, inner, 0, 1});
  hand.close();
  hand.add(Op::ReduceDim, {0, 1, 2, outer, vector, 4});
  hand.add(Op::AddBase, {0, 2});
  hand.open(Op::When, {number(OutputKind::Value)});
  hand.add(Op::Init, {3, 2});
  hand.add(Op::Walk, {3, 1, 2, 0, 1});
  hand.add(Op::Round, {0, 3, 2});
  hand.add(Op::Walk, {4, 1, 2, 0, 1});
  hand.add(Op::SumTrees, {0, 4, 2});
  hand.add(Op::Transform, {0, 2, static_cast<std::uint32_t>(Transform::Softmax)});
  hand.add(Op::Store, {0, 2});
  hand.close();
  hand.open(Op::When, {number(OutputKind::Raw)});
  hand.add(Op::Store, {0, 2});
  hand.close();
  hand.open(Op::When, {number(OutputKind::Class)});
  hand.add(Op::Label, {0, 2, static_cast<std::uint32_t>(ClassRule::Argmax)});
  hand.close();
  hand.close();
  hand.close();
  hand.open(Op::When, {number(OutputKind::Leaf)});
  hand.add(Op::Leaves, {1, 0, 0, 1});
  hand.close();
  hand.close();
  hand.open(Op::On, {static_cast<std::uint32_t>(TargetSet::Avx2Up)});
  hand.close();
  hand.open(Op::When, {number(OutputKind::Trees)});
  hand.add(Op::Encode, {0});
  hand.add(Op::Walk, {4, 1, 0, 0, 1});
  hand.add(Op::StoreTrees, {4, 0});
  hand.close();
  hand.open(Op::When, {number(OutputKind::Staged)});
  hand.add(Op::Encode, {0});
  hand.add(Op::Walk, {4, 1, 0, 0, 1});
  hand.add(Op::Init, {0, 0});
  hand.add(Op::StoreStages, {0, 4, 0, 1});
  hand.close();
  hand.open(Op::When, {number(OutputKind::Contributions)});
  hand.add(Op::Encode, {0});
  hand.add(Op::Explain, {0});
  hand.close();
  hand.open(Op::When, {number(OutputKind::ApproxContributions)});
  hand.add(Op::Encode, {0});
  hand.add(Op::Leaves, {1, 0, 0, 1});
  hand.add(Op::Attribute, {0});
  hand.close();
  hand.open(Op::When, {number(OutputKind::Quantile)});
  hand.add(Op::Encode, {0});
  hand.add(Op::Leaves, {1, 0, 0, 1});
  hand.add(Op::Quantiles, {0});
  hand.close();
  parts.code = hand.code();
  return parts;
}

TEST(Isa, DisassemblyOfEveryOpcode) {
  const ProgramParts parts = every_opcode();
  std::set<Op> used;
  for (const Inst& inst : parts.code) used.insert(inst.op);
  EXPECT_EQ(used.size(), kOpCount) << "a new opcode belongs into this test";
  const auto program = build_program(parts);
  ASSERT_TRUE(program.ok()) << program.error().text();
  support::expect_golden(std::string(FORESTVM_SOURCE_DIR) + "/tests/vm/program/every_opcode.txt",
                         program->disassemble());
}

}  // namespace
}  // namespace forestvm::test::test_isa
