// Refused schedules, one file each in cases/: the schedule (its first comments may name the model and
// options), a line ---, and the error with its place. FORESTVM_UPDATE=1 rewrites the errors.
#include <gtest/gtest.h>

#include <filesystem>

#include <forestvm/compile.hpp>

#include "support/golden.hpp"
#include "support/schedule_case.hpp"
#include "support/test_name.hpp"

namespace forestvm::test::test_errors {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(FORESTVM_SOURCE_DIR) / "tests/error/cases";

/// Compiles the schedule of a case.
Result<Compiled> compiled(const support::ScheduleCase& c) {
  FVM_ASSIGN(const Schedule schedule, parse_schedule(c.schedule));
  return compile(c.model, schedule, c.options);
}

class RefusedSchedule : public testing::TestWithParam<std::string> {};

TEST_P(RefusedSchedule, SaysWhereAndWhy) {
  const fs::path path = kFolder / (GetParam() + ".txt");
  const support::ScheduleCase c = support::read_case(path);
  const Result<Compiled> result = compiled(c);
  ASSERT_FALSE(result.ok()) << "it compiles:\n" << c.schedule;
  EXPECT_EQ(result.error().code, ErrorCode::Refused);
  EXPECT_FALSE(result.error().where.empty()) << result.error().text();
  const std::string break_before = c.schedule.empty() || c.schedule.ends_with('\n') ? "" : "\n";
  support::expect_golden(path.string(), c.schedule + break_before + "---\n" + result.error().text() + "\n");
}

INSTANTIATE_TEST_SUITE_P(Files, RefusedSchedule, testing::ValuesIn(support::case_names(kFolder)),
                         [](const auto& test) { return support::test_name(test.param); });

}  // namespace
}  // namespace forestvm::test::test_errors
