// The points that the host's heuristic search measures: points of the space, few, and by the number of rows and
// threads.
#include "scheduler/choose/host_heuristic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "scheduler/choose/schedule_space.hpp"

namespace forestvm::test::test_host_heuristic {
namespace {

using namespace scheduler;

bool uses(const std::vector<HostTemplatePoint>& points, std::string_view parallel, std::string_view lanes) {
  return std::any_of(points.begin(), points.end(), [&](const HostTemplatePoint& point) {
    return point.parallel == parallel && point.lanes == lanes;
  });
}

TEST(HostHeuristic, MeasuresFewPointsOfTheSpace) {
  for (const std::size_t batch : {1u, 8u, 64u, 65u, 512u, 100000u})
    for (const std::size_t threads : {1u, 2u, 64u}) {
      std::set<std::size_t> numbers;
      const auto points = host_heuristic_points(batch, threads);
      for (const HostTemplatePoint& point : points) {
        const std::size_t number = host_point_number(point);
        EXPECT_TRUE(numbers.insert(number).second) << batch;
        EXPECT_EQ(host_template_schedule(host_template_point(number)), host_template_schedule(point));
      }
      EXPECT_GE(points.size(), 6u) << batch;
      EXPECT_LE(points.size(), 32u) << batch;
    }
}

TEST(HostHeuristic, FollowsRowsAndThreads) {
  EXPECT_TRUE(uses(host_heuristic_points(1, 1), "none", "trees"));
  EXPECT_FALSE(uses(host_heuristic_points(1, 1), "rows", "rows"));
  EXPECT_TRUE(uses(host_heuristic_points(16, 1), "none", "trees"));
  EXPECT_TRUE(uses(host_heuristic_points(16, 1), "rows", "rows"));
  EXPECT_FALSE(uses(host_heuristic_points(4096, 2), "none", "trees"));
  EXPECT_FALSE(uses(host_heuristic_points(1, 1), "trees", "trees"));
  EXPECT_TRUE(uses(host_heuristic_points(1, 2), "trees", "trees"));
  EXPECT_FALSE(uses(host_heuristic_points(4096, 2), "both", "rows"));
}

TEST(HostHeuristic, VariantsChangeOrthogonalParametersOnly) {
  const HostTemplatePoint point{"rows", 256, "rows", 128, "sparse", "probability", "none", "checked"};
  const auto variants = host_variants(point);
  ASSERT_EQ(variants.size(), 3u);
  for (const HostTemplatePoint& variant : variants) {
    EXPECT_EQ(variant.block, point.block);
    EXPECT_EQ(variant.layout, point.layout);
    EXPECT_TRUE(variant.tiling != point.tiling || variant.walker != point.walker);
  }
}

}  // namespace
}  // namespace forestvm::test::test_host_heuristic
