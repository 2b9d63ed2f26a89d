// Algorithm 1 on inputs worked out by hand: the points it measures, the three it tries with shared reduction,
// and its choice.
#include "scheduler/choose/algorithm_1.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace forestvm::test::test_algorithm_1 {
namespace {

using namespace scheduler;

constexpr ThreadBlocks kSmallBlocks = {{8, 32}, {20, 50}}, kLargeBlocks = {{32, 64}, {2, 10}};

/// Measures points by a table of times; points that are not in the table take 100 s. Records the points that it was
/// asked to measure.
struct Bench {
  std::map<std::string, double> seconds;
  std::set<std::string> unable;
  std::vector<std::string> asked;

  Result<GpuTemplatePoint> run(std::size_t batch, std::size_t features) {
    return algorithm_1(batch, features, [&](const GpuTemplatePoint& point) -> std::optional<double> {
      const std::string name = print(point);
      asked.push_back(name);
      if (unable.contains(name)) return std::nullopt;
      const auto known = seconds.find(name);
      return known == seconds.end() ? 100.0 : known->second;
    });
  }
};

TEST(Algorithm1, BlocksFollowBatchAndFeatures) {
  EXPECT_EQ(thread_blocks(1, 1), kSmallBlocks);
  EXPECT_EQ(thread_blocks(2048, 128), kSmallBlocks);
  EXPECT_EQ(thread_blocks(2049, 128), kLargeBlocks);
  EXPECT_EQ(thread_blocks(2049, 129), kSmallBlocks);
  EXPECT_EQ(thread_blocks(16384, 2000), kSmallBlocks);
  EXPECT_EQ(thread_blocks(16384, 8), kLargeBlocks);
}

TEST(Algorithm1, MeasuresThirtySixPoints) {
  const std::vector<GpuTemplatePoint> points = algorithm_1_points(4096, 28);
  ASSERT_EQ(points.size(), 36u);
  EXPECT_EQ(print(points[0]), "rpb32-rpt1-tt2-rows1-trees0-unroll0-il1-shared0-array");
  EXPECT_EQ(print(points[1]), "rpb32-rpt1-tt2-rows1-trees0-unroll0-il1-shared0-sparse");
  EXPECT_EQ(print(points[5]), "rpb32-rpt1-tt2-rows1-trees0-unroll1-il2-shared0-reorg");
  EXPECT_EQ(print(points[9]), "rpb32-rpt1-tt10-rows1-trees0-unroll0-il1-shared0-array");
  EXPECT_EQ(print(points[35]), "rpb64-rpt1-tt10-rows1-trees0-unroll1-il4-shared0-reorg");
  std::set<std::string> names;
  for (const GpuTemplatePoint& point : points) {
    names.insert(print(point));
    EXPECT_EQ(point.unroll_walks, point.interleave != 1) << print(point);
  }
  EXPECT_EQ(names.size(), 36u);
}

TEST(Algorithm1, PointsAreOfTheTemplate) {
  std::set<std::string> all;
  for (std::size_t i = 0; i < kGpuTemplatePoints; ++i) all.insert(print(gpu_template_point(i)));
  for (const std::size_t batch : {1u, 4096u})
    for (const GpuTemplatePoint& point : algorithm_1_points(batch, 28))
      EXPECT_TRUE(all.contains(print(point))) << print(point);
}

TEST(Algorithm1, TriesTheBestThreeWithSharedReduction) {
  Bench bench;
  bench.seconds["rpb8-rpt1-tt50-rows1-trees0-unroll1-il4-shared0-sparse"] = 1;
  bench.seconds["rpb32-rpt1-tt20-rows1-trees0-unroll0-il1-shared0-reorg"] = 3;
  bench.seconds["rpb32-rpt1-tt50-rows1-trees0-unroll1-il2-shared0-array"] = 2;
  bench.seconds["rpb32-rpt1-tt20-rows1-trees0-unroll0-il1-shared1-reorg"] = 0.5;
  const Result<GpuTemplatePoint> chosen = bench.run(512, 28);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(print(*chosen), "rpb32-rpt1-tt20-rows1-trees0-unroll0-il1-shared1-reorg");
  ASSERT_EQ(bench.asked.size(), 39u);
  EXPECT_EQ(bench.asked[36], "rpb8-rpt1-tt50-rows1-trees0-unroll1-il4-shared1-sparse");
  EXPECT_EQ(bench.asked[37], "rpb32-rpt1-tt50-rows1-trees0-unroll1-il2-shared1-array");
  EXPECT_EQ(bench.asked[38], "rpb32-rpt1-tt20-rows1-trees0-unroll0-il1-shared1-reorg");
}

TEST(Algorithm1, KeepsWhatSharedReductionDoesNotImprove) {
  Bench bench;
  const std::string best = "rpb64-rpt1-tt2-rows1-trees0-unroll1-il4-shared0-array";
  bench.seconds[best] = 1;
  bench.seconds["rpb64-rpt1-tt2-rows1-trees0-unroll1-il4-shared1-array"] = 1.5;
  const Result<GpuTemplatePoint> chosen = bench.run(16384, 54);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(print(*chosen), best);
}

TEST(Algorithm1, OfEqualsTheFirstIsTaken) {
  Bench bench;
  const Result<GpuTemplatePoint> chosen = bench.run(1, 28);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(print(*chosen), "rpb8-rpt1-tt20-rows1-trees0-unroll0-il1-shared0-array");
}

TEST(Algorithm1, PassesOverWhatCannotRun) {
  Bench bench;
  const std::vector<GpuTemplatePoint> points = algorithm_1_points(1, 2000);
  for (std::size_t i = 0; i + 1 < points.size(); ++i) bench.unable.insert(print(points[i]));
  const Result<GpuTemplatePoint> chosen = bench.run(1, 2000);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(*chosen, points.back());
  EXPECT_EQ(bench.asked.size(), 37u);
  bench.unable.insert(print(points.back()));
  EXPECT_FALSE(bench.run(1, 2000).ok());
}

}  // namespace
}  // namespace forestvm::test::test_algorithm_1
