// The plans of a schedule and the calls that they are for, also of schedules that are refused.
#include "scheduler/plan_ranges.hpp"

#include <gtest/gtest.h>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler::test_plan_ranges {
namespace {

/// Returns "first directive-end: least-most target" for each plan; "+" marks a plan that shares its rows.
std::string ranges(std::string_view text) {
  const Result<Schedule> schedule = parse_schedule(text);
  if (!schedule) return schedule.error().text();
  std::string listed;
  for (const PlanRange& plan : plan_ranges(*schedule)) {
    if (plan.directive != nullptr && plan.directive != &schedule->directives[plan.begin - 1]) return "astray";
    listed += formatted("{}{}{}-{}: {}-{} {}", listed.empty() ? "" : "; ",
                        plan.directive ? "" : "no directive ", plan.begin, plan.end, plan.least,
                        plan.most == kAnyRows ? std::string("any") : std::to_string(plan.most),
                        plan.target.empty() ? std::string("all") : plan.target);
    if (plan.shares_rows) listed += "+";
  }
  return listed;
}

TEST(PlanRanges, OfAScheduleWithoutPlansIsOne) {
  EXPECT_EQ(ranges(""), "no directive 0-0: 1-any all");
  EXPECT_EQ(ranges("parallel(batch); encode(u8)"), "no directive 0-2: 1-any all");
}

TEST(PlanRanges, FollowEachOther) {
  EXPECT_EQ(ranges("plan(1); encode(u8); plan(64); plan(BATCH); parallel(batch); encode(u8)"),
            "1-2: 1-1 all; 3-3: 2-64 all; 4-6: 65-any all");
}

TEST(PlanRanges, OfSeveralTargetsAreForTheSameRows) {
  EXPECT_EQ(ranges("plan(8, avx512); plan(8, avx2); plan(8); plan(BATCH, avx2); plan(BATCH)"),
            "1-1: 1-8 avx512; 2-2: 1-8 avx2+; 3-3: 1-8 all+; 4-4: 9-any avx2; 5-5: 9-any all+");
}

TEST(PlanRanges, OfIllegalSchedules) {
  EXPECT_EQ(ranges("encode(u8); plan(9); plan(4)"), "2-2: 1-9 all; 3-3: 10-4 all");
  EXPECT_EQ(ranges("plan(BATCH); plan(7)"), formatted("1-1: 1-any all; 2-2: {}-7 all", kAnyRows + 1));
}

}  // namespace
}  // namespace forestvm::scheduler::test_plan_ranges
