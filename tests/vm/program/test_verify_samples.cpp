// The verifier's rules for the targets that leaves keep, one test case for each.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "vm/small_program.hpp"

namespace forestvm::test::test_verify_samples {
namespace {

/// Breaks one thing, and expects a refusal that says `what`.
template <class Break>
void expect_refused(Break breaks, const std::string& what) {
  ProgramParts parts = parts_of(sampled_program());
  breaks(parts);
  const auto program = build_program(parts);
  const std::string text = program.ok() ? "" : program.error().text();
  EXPECT_NE(text.find(what), std::string::npos) << text;
}

Inst made(Op op, std::vector<std::uint32_t> operands) {
  operands.resize(kMaxOperands);
  return pack(op, operands.data());
}

Inst& first(ProgramParts& parts, Op op) {
  for (Inst& inst : parts.code)
    if (inst.op == op) return inst;
  throw std::runtime_error("the program lacks an instruction");
}

TEST(VerifySamples, AcceptsWhatIsCompiled) {
  const auto program = build_program(parts_of(sampled_program()));
  ASSERT_TRUE(program.ok()) << program.error().text();
}

TEST(VerifySamples, Sections) {
  expect_refused([](ProgramParts& p) { p.targets.clear(); },
                 "targets section: it is empty, but leaves keep targets");
  expect_refused([](ProgramParts& p) { p.sampled_trees.pop_back(); },
                 "sampled_trees section: 5 records, but 6 trees");
  expect_refused([](ProgramParts& p) { p.sampled_trees[0].leaf_count = 1u << 30; },
                 "its leaves leave the sampled_leaves section");
  expect_refused([](ProgramParts& p) { p.sampled_trees[0].first_leaf = UINT32_MAX; },
                 "its leaves leave the sampled_leaves section");
  expect_refused([](ProgramParts& p) { p.sampled_leaves.clear(); }, "does not begin and end with");
  expect_refused([](ProgramParts& p) { p.sampled_leaves[0] = 1; }, "does not begin and end with");
  expect_refused([](ProgramParts& p) { ++p.sampled_leaves.back(); }, "does not begin and end with");
  expect_refused([](ProgramParts& p) { p.sampled_leaves[1] = 1u << 20; }, "below the record before it");
}

TEST(VerifySamples, Targets) {
  expect_refused([](ProgramParts& p) { p.sample_targets[0] = static_cast<std::uint32_t>(p.targets.size()); },
                 "sample_targets section: record 0: its target does not exist");
  expect_refused([](ProgramParts& p) { p.targets[0] = -HUGE_VAL; },
                 "targets section: record 0: it is not finite");
  expect_refused([](ProgramParts& p) { p.targets[1] = NAN; }, "targets section: record 1: it is not finite");
  expect_refused([](ProgramParts& p) { p.targets[1] = p.targets[0]; },
                 "record 1: it is not above the record before it");
}

TEST(VerifySamples, Code) {
  expect_refused(
      [](ProgramParts& p) {
        first(p, Op::Quantiles) = made(Op::Slice, {5, 0, 0, 1});
      },
      "the output is not written for every row (output quantile");
  expect_refused(
      [](ProgramParts& p) {
        first(p, Op::Leaves) = made(Op::Slice, {5, 0, 0, 1});
      },
      "it reads the number of every tree's leaf");
  expect_refused([](ProgramParts& p) { first(p, Op::Store) = made(Op::Quantiles, {0}); },
                 "it writes quantiles (output raw");
  expect_refused(
      [](ProgramParts& p) {
        p.sampled_trees.clear();
        p.sampled_leaves.clear();
        p.sample_targets.clear();
        p.targets.clear();
      },
      "the program's leaves keep no targets");
}

}  // namespace
}  // namespace forestvm::test::test_verify_samples
