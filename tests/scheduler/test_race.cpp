// Races of candidates with made-up times: the fastest wins through noise, turns alternate, the slower half leaves,
// equals are not separated, and a stop keeps the best so far.
#include "scheduler/choose/race.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

namespace forestvm::test::test_race {
namespace {

using namespace scheduler;

/// Measures candidates that take these times. Noise lengthens a time by up to its share, and one time in ten fivefold.
struct Noisy {
  std::vector<double> seconds;
  double noise = 0;
  std::vector<std::size_t> asked{};
  std::mt19937_64 random{7};

  double uniform() { return static_cast<double>(random() >> 11) * 0x1p-53; }
  Result<RaceResult> run(std::size_t most = SIZE_MAX) {
    const auto measure = [this](std::size_t candidate) -> Result<double> {
      asked.push_back(candidate);
      const double factor = 1 + noise * uniform();
      return seconds[candidate] * (noise > 0 && uniform() < 0.1 ? 5 * factor : factor);
    };
    return race(seconds.size(), measure, [&] { return asked.size() >= most; });
  }
};

TEST(Race, TheFastestWinsThroughNoise) {
  Noisy noisy{{1.3, 1.2, 1.0, 1.1, 1.5, 2.0, 1.4, 1.25, 1.6}, 0.3};
  const auto result = noisy.run();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->standings.front().candidate, 2u);
  EXPECT_TRUE(result->is_separated);
  std::set<std::size_t> all;
  for (const Standing& standing : result->standings) all.insert(standing.candidate);
  EXPECT_EQ(all.size(), 9u);
}

TEST(Race, EveryRoundHalvesAndDoublesTurns) {
  Noisy exact{{4, 1, 3, 2}};
  const auto result = exact.run();
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->standings.size(), 4u);
  EXPECT_EQ(result->standings[0].candidate, 1u);
  EXPECT_EQ(result->standings[1].candidate, 3u);
  EXPECT_EQ(result->standings[2].candidate, 2u);
  EXPECT_EQ(result->standings[3].candidate, 0u);
  EXPECT_EQ(result->standings[3].times.size(), kFirstTurns);
  EXPECT_EQ(result->standings[0].times.size(), kFirstTurns * 7);  // 4, 8 and 16 turns: 28 are enough to judge
  EXPECT_TRUE(result->is_separated);
}

TEST(Race, CandidatesAreMeasuredInTurns) {
  Noisy exact{{1, 2, 3, 4, 5}};
  ASSERT_TRUE(exact.run().ok());
  for (std::size_t turn = 0; turn < kFirstTurns; ++turn) {
    const auto begin = exact.asked.begin() + static_cast<std::ptrdiff_t>(5 * turn);
    EXPECT_EQ(std::set<std::size_t>(begin, begin + 5).size(), 5u) << turn;
  }
}

TEST(Race, EqualsAreNotSeparatedAndEnd) {
  Noisy equal{{1, 1, 1}, 0.5};
  const auto result = equal.run();
  ASSERT_TRUE(result.ok());
  EXPECT_LE(equal.asked.size(), 2 * kMaxTurns + kFirstTurns);
  EXPECT_TRUE(result->is_separated || result->standings[0].times.size() == kMaxTurns);
  Noisy same{{1, 1}};
  const auto never = same.run();
  ASSERT_TRUE(never.ok());
  EXPECT_FALSE(never->is_separated);
  EXPECT_EQ(never->standings[0].candidate, 0u);
  EXPECT_EQ(never->standings[0].times.size(), kMaxTurns);
  EXPECT_EQ(never->standings[1].times.size(), kMaxTurns);
}

TEST(Race, AStopKeepsTheBestSoFar) {
  Noisy exact{{3, 1, 2}};
  const auto result = exact.run(4);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(exact.asked.size(), 4u);
  EXPECT_EQ(result->standings[0].candidate, 1u);
  EXPECT_FALSE(result->is_separated);
  Noisy none{{3, 1, 2}};
  const auto nothing = none.run(0);
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(nothing->standings[0].candidate, 0u);
  EXPECT_TRUE(std::isinf(nothing->standings[0].typical()));
}

TEST(Race, OneCandidateNeedsNoTurns) {
  Noisy alone{{1}};
  const auto result = alone.run();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->standings.size(), 1u);
  EXPECT_TRUE(alone.asked.empty());
}

TEST(Race, FailuresEndIt) {
  const auto result = race(
      2, [](std::size_t) -> Result<double> { return refused("candidate", "cannot run"); },
      [] { return false; });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().text(), "candidate: cannot run");
}

}  // namespace
}  // namespace forestvm::test::test_race
