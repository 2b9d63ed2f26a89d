// The verifier's rules for what leaves attribute to features, one test case for each.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_verify_attributions {
namespace {

ProgramParts attributed_parts() {
  Model model = small_forest();
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  CompileOptions options;
  options.approx_contributions = true;
  return parts_of(compiled(model, "", options));
}

/// Breaks one thing, and expects a refusal that says `what`.
template <class Break>
void expect_refused(Break breaks, const std::string& what) {
  ProgramParts parts = attributed_parts();
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

TEST(VerifyAttributions, AcceptsWhatIsCompiled) {
  const auto program = build_program(attributed_parts());
  ASSERT_TRUE(program.ok()) << program.error().text();
}

TEST(VerifyAttributions, Sections) {
  expect_refused([](ProgramParts& p) { p.attribution_base.clear(); }, "but leaves have attributions");
  expect_refused([](ProgramParts& p) { p.attribution_base.push_back(0); },
                 "attribution_base section: 4 numbers, but 3 outputs");
  const auto with_margins = [](ProgramParts& p, std::vector<double> means) {
    p.meta.takes_margins = 1;
    p.attribution_base.insert(p.attribution_base.end(), means.begin(), means.end());
  };
  ProgramParts parts = attributed_parts();
  with_margins(parts, {});  // of an earlier release
  EXPECT_TRUE(build_program(parts).ok());
  with_margins(parts, {1, 2, 3});
  EXPECT_TRUE(build_program(parts).ok());
  expect_refused(
      [&](ProgramParts& p) {
        with_margins(p, {1, 2});
      },
      "attribution_base section: 5 numbers, but 3 outputs");
  expect_refused(
      [&](ProgramParts& p) {
        with_margins(p, {1, HUGE_VAL, 3});
      },
      "attribution_base section: record 4: it is not finite");
  expect_refused(
      [&](ProgramParts& p) {
        with_margins(p, {1, 2, 3});
        p.meta.takes_margins = 0;
      },
      "attribution_base section: 6 numbers, but 3 outputs");
  expect_refused([](ProgramParts& p) { p.attribution_base[0] = HUGE_VAL; }, "record 0: it is not finite");
  expect_refused([](ProgramParts& p) { p.attributed_trees.pop_back(); }, "attributed_trees section");
  expect_refused([](ProgramParts& p) { p.attributed_trees[0].leaf_count = 1u << 30; },
                 "its leaves leave the attributed_leaves section");
  expect_refused([](ProgramParts& p) { p.attributed_trees[0].first_leaf = UINT32_MAX; },
                 "its leaves leave the attributed_leaves section");
  expect_refused([](ProgramParts& p) { --p.attributed_trees[1].first_leaf; },
                 "record 1: its leaves do not follow those of the tree before it");
  expect_refused([](ProgramParts& p) { p.attributed_leaves.clear(); }, "does not begin and end with");
  expect_refused([](ProgramParts& p) { p.attributed_leaves[0] = 1; }, "does not begin and end with");
  expect_refused([](ProgramParts& p) { ++p.attributed_leaves.back(); }, "does not begin and end with");
  expect_refused([](ProgramParts& p) { p.attributed_leaves[1] = 1u << 20; }, "below the record before it");
}

TEST(VerifyAttributions, Attributions) {
  const std::string where = "attributions section: record 0: ";
  expect_refused([](ProgramParts& p) { p.attributions[0].index = p.meta.num_features; },
                 where + "its feature does not exist");
  expect_refused([](ProgramParts& p) { p.attributions[0].index = UINT32_MAX; },
                 where + "its feature does not exist");
  expect_refused([](ProgramParts& p) { p.attributions[0].value = NAN; }, where + "its number is not finite");
  expect_refused([](ProgramParts& p) { p.attributions[0].reserved = 1; },
                 where + "a reserved byte is not zero");
}

TEST(VerifyAttributions, Code) {
  expect_refused(
      [](ProgramParts& p) {
        first(p, Op::Attribute) = made(Op::Slice, {5, 0, 0, 1});
      },
      "the output is not written for every row (output approx-contributions");
  expect_refused(
      [](ProgramParts& p) {
        first(p, Op::Leaves) = made(Op::Slice, {5, 0, 0, 1});
      },
      "it reads the number of every tree's leaf");
  expect_refused([](ProgramParts& p) { first(p, Op::Store) = made(Op::Attribute, {0}); },
                 "it writes approximate contributions (output raw");
  expect_refused(
      [](ProgramParts& p) {
        p.attribution_base.clear();
        p.attributed_trees.clear();
        p.attributed_leaves.clear();
        p.attributions.clear();
      },
      "the program's leaves attribute nothing to features");
}

}  // namespace
}  // namespace forestvm::test::test_verify_attributions
