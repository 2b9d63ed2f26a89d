// The cutting of parallel loops over rows into tasks: evenly, and not into tasks that are too small. Short calls
// run alone or shared, whichever was faster, also after that has changed.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

#include "vm/host/grain.hpp"

namespace forestvm::test::test_grain {
namespace {

using host::Grain;
using host::kGrainRows;
using std::chrono::microseconds;

/// Simulates calls of `rows` rows, in tasks of up to 256 rows for 4 threads, that take the given times alone
/// and shared; returns the part of calls that was shared.
double shared_part(Grain& grain, std::uint32_t rows, microseconds alone, microseconds shared,
                   int calls = 5000) {
  int times = 0;
  for (int i = 0; i < calls; ++i) {
    const Grain::Tasks tasks = grain.divide(rows, 256, 4);
    times += tasks.shared ? 1 : 0;
    if (tasks.timed) grain.record(rows, tasks.shared, tasks.shared ? shared : alone);
  }
  return static_cast<double>(times) / calls;
}

TEST(Grain, FewRowsAreOneTask) {
  Grain grain;
  for (const std::uint32_t rows : {0u, 1u, 31u, kGrainRows}) {
    const Grain::Tasks tasks = grain.divide(rows, 256, 8);
    EXPECT_FALSE(tasks.shared) << rows;
    EXPECT_FALSE(tasks.timed) << rows;
    EXPECT_EQ(tasks.rows, 256u) << rows;
  }
}

/// A schedule with shorter steps has rows that are worth a task each.
TEST(Grain, FewRowsAreSharedWhereStepsAreShort) {
  for (const std::uint32_t step : {1u, 4u, 31u}) {
    Grain grain;
    EXPECT_FALSE(grain.divide(step, step, 8).timed) << step;
    for (const std::uint32_t rows : {step + 1, 2 * step, 32u}) {
      Grain other;
      const Grain::Tasks tasks = other.divide(rows, step, 8);
      EXPECT_TRUE(tasks.shared && tasks.timed) << rows;
      EXPECT_EQ(tasks.rows, step) << rows;
    }
  }
}

TEST(Grain, TasksAreEvenWholeAndAtMostAsLongAsTheScheduleSays) {
  for (const std::uint32_t rows : {33u, 64u, 100u, 513u, 1000u, 5000u, 1000000u})
    for (const std::uint32_t most : {1u, 33u, 64u, 256u, 512u, 2000000u})
      for (const unsigned threads : {2u, 3u, 16u}) {
        Grain grain;
        const Grain::Tasks tasks = grain.divide(rows, most, threads);  // the first call of a kind is shared
        ASSERT_TRUE(tasks.shared);
        ASSERT_GE(tasks.rows, 1u);
        ASSERT_LE(tasks.rows, most);
        ASSERT_TRUE(tasks.rows % kGrainRows == 0 || tasks.rows == most) << tasks.rows;
        if (most >= rows && rows >= threads * kGrainRows) {
          EXPECT_GE((rows + tasks.rows - 1) / tasks.rows, (threads + 1) / 2)
              << rows << " rows, " << tasks.rows;
        }
      }
}

TEST(Grain, TheFasterWayIsTaken) {
  Grain cheap, dear;
  EXPECT_LT(shared_part(cheap, 64, microseconds(5), microseconds(8)), 0.05);
  EXPECT_GT(shared_part(dear, 64, microseconds(50), microseconds(30)), 0.95);
}

TEST(Grain, CallsOfOtherLengthsAreJudgedApart) {
  Grain grain;
  EXPECT_LT(shared_part(grain, 64, microseconds(5), microseconds(8)), 0.05);
  EXPECT_GT(shared_part(grain, 200, microseconds(50), microseconds(30)), 0.95);
  EXPECT_LT(shared_part(grain, 64, microseconds(5), microseconds(8)), 0.05);
}

TEST(Grain, AnotherWayThatHasBecomeFasterIsFound) {
  Grain grain;
  EXPECT_LT(shared_part(grain, 64, microseconds(20), microseconds(80)), 0.05);
  shared_part(grain, 64, microseconds(20), microseconds(12));  // measures both ways
  EXPECT_GT(shared_part(grain, 64, microseconds(20), microseconds(12)), 0.95);
  shared_part(grain, 64, microseconds(20), microseconds(25));
  EXPECT_LT(shared_part(grain, 64, microseconds(20), microseconds(25)), 0.05);
}

TEST(Grain, OneSlowCallChangesNothing) {
  Grain grain;
  EXPECT_LT(shared_part(grain, 64, microseconds(20), microseconds(40)), 0.05);
  grain.record(64, false, microseconds(1000000));
  EXPECT_LT(shared_part(grain, 64, microseconds(20), microseconds(40), 100), 0.05);
}

TEST(Grain, LongCallsAreSharedUnasked) {
  Grain grain;
  EXPECT_EQ(shared_part(grain, 100000, microseconds(900000), microseconds(1000000), 100), 1.0);
}

}  // namespace
}  // namespace forestvm::test::test_grain
