// The verifier's rules for leaves whose contributions are looked up, one test case for each.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "vm/small_program.hpp"

namespace forestvm::test::test_verify_patterns {
namespace {

ProgramParts compared_parts() {
  RichCase rich{"encode(u8)", Contract::Trainer};
  rich.background = true;
  return parts_of(program_of(forest_of(rich), rich));
}

/// Breaks one thing, and expects a refusal that says `what`.
template <class Break>
void expect_refused(Break breaks, const std::string& what) {
  ProgramParts parts = compared_parts();
  breaks(parts);
  const auto program = build_program(parts);
  const std::string text = program.ok() ? "" : program.error().text();
  EXPECT_NE(text.find(what), std::string::npos) << text;
}

TEST(VerifyPatterns, AcceptsWhatIsCompiled) {
  const auto program = build_program(compared_parts());
  ASSERT_TRUE(program.ok()) << program.error().text();
  EXPECT_EQ(program->background().size(), 1u);
  EXPECT_FALSE(program->pattern_leaves().empty());
}

TEST(VerifyPatterns, Leaves) {
  const std::string where = "pattern_leaves section: record 0: its output, a test";
  expect_refused([](ProgramParts& p) { p.pattern_leaves[0].output = 3; }, where);
  expect_refused([](ProgramParts& p) { p.pattern_leaves[0].features = 0; }, where);
  expect_refused([](ProgramParts& p) { p.pattern_leaves[0].features = kMaxPatternFeatures + 1; }, where);
  expect_refused([](ProgramParts& p) { p.pattern_leaves[0].test_count = UINT32_MAX; }, where);
  const std::string what = "pattern_leaves section: record";
  expect_refused([](ProgramParts& p) { ++p.pattern_leaves.back().features; }, what);
  expect_refused([](ProgramParts& p) { --p.pattern_leaves.back().test_count; }, what);
  expect_refused([](ProgramParts& p) { p.pattern_numbers.pop_back(); }, what);
  expect_refused([](ProgramParts& p) { p.pattern_numbers.clear(); }, what);
  expect_refused([](ProgramParts& p) { p.pattern_numbers[1] = NAN; }, what);
}

TEST(VerifyPatterns, Tests) {
  const std::string where = "pattern_leaves section: record 0: its output, a test";
  expect_refused([](ProgramParts& p) { p.pattern_tests[1].column = 1u << 20; }, where);
  expect_refused([](ProgramParts& p) { p.pattern_tests[1].feature = 3; }, where);
  expect_refused([](ProgramParts& p) { p.pattern_tests[1].bit = 200; }, where);
  expect_refused([](ProgramParts& p) { p.pattern_tests[1].adds = 2; }, where);
  expect_refused(
      [](ProgramParts& p) {
        p.pattern_tests[1].low = 2;
        p.pattern_tests[1].high = 1;
      },
      where);
}

TEST(VerifyPatterns, Sections) {
  const std::string what = "background section: it does not go with the rest of the program";
  expect_refused([](ProgramParts& p) { p.background.clear(); }, what);
  expect_refused([](ProgramParts& p) { p.background.push_back(1); }, what);
  expect_refused([](ProgramParts& p) { p.meta.contributions = 2; }, what);
  expect_refused([](ProgramParts& p) { p.meta.contributions = 0; }, what);
}

}  // namespace
}  // namespace forestvm::test::test_verify_patterns
