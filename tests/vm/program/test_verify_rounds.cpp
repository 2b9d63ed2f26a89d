// The verifier's rules for the rounds of a program that keeps every tree's leaf, and for the instructions that write
// outputs of trees and stages, one test case for each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <forestvm/core/sums.hpp>
#include <forestvm/internal/code_map.hpp>

#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_verify_rounds {
namespace {

Program kept(const std::string& schedule) {
  CompileOptions options;
  options.keeps_leaves = true;
  return compiled(small_forest(), schedule, options);
}

ProgramParts kept_parts() { return parts_of(kept("")); }

std::string refusal(const ProgramParts& parts) {
  const auto program = build_program(parts);
  return program.ok() ? "" : program.error().text();
}

/// Breaks one thing, and expects a refusal that says `what`.
template <class Break>
void expect_refused(Break breaks, const std::string& what) {
  ProgramParts parts = kept_parts();
  breaks(parts);
  const std::string text = refusal(parts);
  EXPECT_NE(text.find(what), std::string::npos) << text;
}

Inst& first(ProgramParts& parts, Op op) {
  for (Inst& inst : parts.code)
    if (inst.op == op) return inst;
  throw std::runtime_error("the program lacks an instruction");
}

Inst made(Op op, std::vector<std::uint32_t> operands) {
  operands.resize(kMaxOperands);
  return pack(op, operands.data());
}

TEST(VerifyRounds, AcceptsWhatIsCompiled) {
  EXPECT_EQ(refusal(kept_parts()), "");
  ProgramParts no_rounds = kept_parts();
  no_rounds.meta.rounds = RoundRule::None;
  EXPECT_EQ(refusal(no_rounds), "");
  ProgramParts empty_round = kept_parts();
  empty_round.round_begins = {0, 3, 3, 6};
  EXPECT_EQ(refusal(empty_round), "");
}

TEST(VerifyRounds, Sections) {
  expect_refused([](ProgramParts& p) { p.meta.rounds = static_cast<RoundRule>(4); },
                 "unknown rule of rounds");
  expect_refused([](ProgramParts& p) { p.round_begins.clear(); }, "a rule of rounds, but no rounds");
  expect_refused([](ProgramParts& p) { p.round_begins = {0, 3}; }, "do not cover the 6 trees");
  expect_refused([](ProgramParts& p) { p.round_begins = {1, 6}; }, "do not cover the 6 trees");
  expect_refused([](ProgramParts& p) { p.round_begins = {0, 7, 6}; }, "record 2: it does not ascend");
}

TEST(VerifyRounds, OnlyOutputsOfTreesUseLeavesThatAreKeptApart) {
  for (const auto& [schedule, apart] : {std::pair("", true), std::pair("accumulate(leaves)", false)}) {
    const Program program = kept(schedule);
    for (std::size_t i = 0; i < program.accumulators().size(); ++i)
      EXPECT_EQ(code_map(program).accumulators[i].of_trees,
                apart && is_per_tree(program.accumulators()[i].kind))
          << schedule << " a" << i;
  }
}

TEST(VerifyRounds, WalksThatAddToSumsGoThroughTreesInOrder) {
  expect_refused([](ProgramParts& p) { std::swap(p.trees[0].number, p.trees[1].number); },
                 "(walk): it adds the trees of group 0 to sums, but they are not in the model's order");
}

TEST(VerifyRounds, Instructions) {
  const auto no_rounds = [](ProgramParts& p) {
    p.meta.rounds = RoundRule::None;
    p.round_begins.clear();
  };
  expect_refused(no_rounds, "(store_trees): the program has no rounds");
  expect_refused([](ProgramParts& p) { first(p, Op::StoreTrees).small[0] = 0; },
                 "a0 does not hold per-tree values");
  expect_refused([](ProgramParts& p) { first(p, Op::StoreStages).small[1] = 0; },
                 "a0 does not hold per-tree values");
  expect_refused([](ProgramParts& p) { first(p, Op::StoreStages).wide[0] = 2; },
                 "the base scores are neither first nor last");
  expect_refused(
      [](ProgramParts& p) {
        first(p, Op::StoreTrees) = made(Op::Zero, {0, 0});
      },
      "the output is not written for every row (output trees");
  expect_refused(
      [](ProgramParts& p) {
        first(p, Op::StoreStages) = made(Op::Zero, {0, 0});
      },
      "the output is not written for every row (output staged");
  expect_refused(
      [](ProgramParts& p) {
        first(p, Op::Store) = made(Op::StoreTrees, {1, 0});
      },
      "it writes the outputs of trees (output raw");
  expect_refused(
      [](ProgramParts& p) {
        first(p, Op::Store) = made(Op::StoreStages, {0, 1, 0, 0});
      },
      "it writes scores of stages, virtual ensembles or uncertainty (output raw");
  expect_refused(
      [](ProgramParts& p) {
        first(p, Op::Init) = made(Op::Slice, {9, 1, 0, 0});
      },
      "a0 is read for rows of which it holds nothing (output staged");
  expect_refused(
      [](ProgramParts& p) {
        for (Inst& inst : p.code)
          if (inst.op == Op::Walk) inst = made(Op::Zero, {0, 0});
      },
      "it does not hold every tree's leaf");
}

/// Returns the parts of a program of three outputs with a rule of uncertainty.
ProgramParts uncertain_parts(UncertaintyRule rule = UncertaintyRule::Classes) {
  Model model = small_forest();
  make_wide(model);
  if (rule == UncertaintyRule::Trees)
    model.averaged = true;
  else
    model.uncertainty = rule;
  std::fill(model.base.begin(), model.base.end(), 0.0);
  model.shrinkage = 0.25f;
  CompileOptions options;
  options.keeps_leaves = true;
  return parts_of(compiled(model, "", options));
}

TEST(VerifyRounds, Uncertainty) {
  for (const UncertaintyRule rule : {UncertaintyRule::Classes, UncertaintyRule::Trees})
    EXPECT_EQ(refusal(uncertain_parts(rule)), "");
  const auto expect = [](auto breaks, const std::string& what,
                         UncertaintyRule rule = UncertaintyRule::Classes) {
    ProgramParts parts = uncertain_parts(rule);
    breaks(parts);
    const std::string text = refusal(parts);
    EXPECT_NE(text.find(what), std::string::npos) << text;
  };
  expect([](ProgramParts& p) { p.uncertainty.push_back(p.uncertainty[0]); }, "2 records, at most 1");
  expect([](ProgramParts& p) { p.uncertainty[0].rule = UncertaintyRule::None; }, "there is no rule 0");
  expect([](ProgramParts& p) { p.uncertainty[0].rule = static_cast<UncertaintyRule>(6); },
         "there is no rule 6");
  expect([](ProgramParts& p) { p.uncertainty[0].reserved[2] = 1; }, "a reserved byte is not zero");
  for (const float wrong : {-0.5f, 1.0f, NAN})
    expect([&](ProgramParts& p) { p.uncertainty[0].shrinkage = wrong; },
           "its shrinkage is not from 0 to below 1");
  expect([](ProgramParts& p) { p.uncertainty[0].rule = UncertaintyRule::Trees; },
         "its rule is for other rounds");
  expect([](ProgramParts& p) { p.uncertainty[0].rule = UncertaintyRule::Classes; },
         "its rule is for other rounds", UncertaintyRule::Trees);
  expect([](ProgramParts& p) { p.uncertainty[0].rule = UncertaintyRule::Binary; },
         "its rule is for 1 outputs, the program has 3");
  expect([](ProgramParts& p) { p.uncertainty[0].rule = UncertaintyRule::Gaussian; },
         "its rule is for 2 outputs");
  // Calls for an output that the program does not have are refused before its code runs.
  ProgramParts none = uncertain_parts();
  none.uncertainty.clear();
  const auto program = build_program(none);
  ASSERT_TRUE(program.ok()) << program.error().text();
  EXPECT_FALSE(check_call(*program, OutputKind::Uncertainty, {}).ok());
  ProgramParts narrow = kept_parts();
  narrow.uncertainty.push_back({UncertaintyRule::Classes, {}, 0});
  EXPECT_NE(refusal(narrow).find("its rule is for float64 scores"), std::string::npos) << refusal(narrow);
  ProgramParts without = uncertain_parts(UncertaintyRule::Classes);
  without.round_begins.clear();
  EXPECT_NE(refusal(without).find("the program keeps no leaves"), std::string::npos) << refusal(without);
}

}  // namespace
}  // namespace forestvm::test::test_verify_rounds
