// The host's space of schedules: its points have all combinations of the values in spaces.def, their schedules read
// back, and each compiles or is refused with the place and the reason. The outcomes are counted and printed.
#include "scheduler/choose/host_template.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/compile.hpp>

#include "scheduler/choose/schedule_space.hpp"
#include "support/small_models.hpp"

namespace forestvm::test::test_host_template {
namespace {

using namespace scheduler;
using support::small_model;

std::string text_of(const HostTemplatePoint& point) { return print(host_template_schedule(point)); }

TEST(ScheduleSpace, PointsHaveAllCombinationsOfValues) {
  for (const ScheduleSpace& space : schedule_spaces()) {
    SCOPED_TRACE(space.name);
    std::set<std::string> names;
    std::map<std::string, std::size_t> uses;
    for (std::size_t point = 0; point < space.points; ++point) {
      EXPECT_TRUE(names.insert(point_name(space, point)).second);
      const std::vector<std::string_view> values = point_values(space, point);
      EXPECT_EQ(point_of(space, values), point);
      for (std::size_t i = 0; i < values.size(); ++i)
        ++uses[std::string(space.parameters[i].name) + "=" + std::string(values[i])];
    }
    for (const SpaceParameter& parameter : space.parameters)
      for (const std::string_view value : parameter.values)
        EXPECT_EQ(uses[std::string(parameter.name) + "=" + std::string(value)],
                  space.points / parameter.values.size())
            << parameter.name << "=" << value;
  }
  EXPECT_EQ(gpu_space().points, 5184u);
  EXPECT_EQ(
      point_name(gpu_space(), 0),
      "rows-per-block=8 rows-per-thread=1 tree-threads=2 cache-rows=yes cache-trees=yes unroll-walks=yes "
      "interleave=1 shared-reduce=yes layout=array");
}

TEST(HostTemplate, WritesWhatThePointSays) {
  EXPECT_EQ(text_of({}),
            "tile(batch, b0, b1, 64)\nreorder(b0, tree, b1)\nlayout(tree, array)\nencode(none)\n");
  EXPECT_EQ(
      text_of({"rows", 256, "rows", 16, "sparse", "probability", "u8", "unrolled"}),
      "tile(batch, b0, b1, 256)\nreorder(b0, tree, b1)\ntile(b1, b2, b3, 16)\nparallel(b0)\n"
      "tileTree(tree, 1, probability)\nlayout(tree, sparse)\nencode(u8)\ninterleave(b3)\nunrollWalk(b3)\n");
  EXPECT_EQ(text_of({"trees", 16, "trees", 8, "array", "uniform4", "none", "checked"}),
            "tile(tree, t0, t1, 16)\nreorder(t0, batch, t1)\ntile(t1, t2, t3, 8)\nparallel(t0)\n"
            "tileTree(tree, 4, uniform)\nlayout(tree, array)\nencode(none)\ninterleave(t3)\n");
  EXPECT_EQ(
      text_of({"both", 64, "trees", 1, "reorg", "uniform8", "none", "checked"}),
      "tile(batch, b0, b1, 64)\ntile(tree, t0, t1, 64)\nreorder(b0, t0, b1, t1)\nparallel(b0)\nparallel(t0)\n"
      "tileTree(tree, 8, uniform)\nlayout(tree, reorg)\nencode(none)\n");
  EXPECT_EQ(text_of({"none", 64, "trees", 128, "sparse", "none", "none", "checked"}),
            "tile(tree, t2, t3, 128)\nlayout(tree, sparse)\nencode(none)\ninterleave(t3)\n");
}

TEST(HostTemplate, TablesHaveNeitherLockstepNorSteps) {
  const std::string text = text_of({"rows", 256, "rows", 1, "tables", "none", "u8", "checked"});
  EXPECT_EQ(
      text,
      "tile(batch, b0, b1, 256)\nreorder(b0, tree, b1)\nparallel(b0)\nlayout(tree, tables)\nencode(u8)\n");
  EXPECT_EQ(text_of({"rows", 256, "rows", 64, "tables", "none", "u8", "unrolled"}), text);
}

/// Compiles each schedule of the space once. A refusal names a directive, and every kind of schedule compiles
/// somewhere.
TEST(HostTemplate, EveryPointCompilesOrIsRefusedWithPlaceAndReason) {
  const ScheduleSpace& space = host_space();
  const Model model = small_model("small");
  std::set<std::string> texts, compiling;
  std::map<std::string, std::size_t> refusals;
  std::size_t legal = 0;
  for (std::size_t point = 0; point < space.points; ++point) {
    const std::string text = print(space.schedule(model, point));
    if (!texts.insert(text).second) continue;
    const Result<Schedule> schedule = parse_schedule(text);
    ASSERT_TRUE(schedule.ok()) << schedule.error().text() << "\n" << text;
    EXPECT_EQ(*schedule, space.schedule(model, point));
    const Result<Compiled> compiled = compile(model, *schedule);
    if (compiled.ok()) {
      ++legal;
      for (const std::string_view value : point_values(space, point)) compiling.insert(std::string(value));
      continue;
    }
    EXPECT_TRUE(compiled.error().where.starts_with("line ")) << text << compiled.error().text();
    EXPECT_FALSE(compiled.error().message.empty()) << text;
    ++refusals[compiled.error().message];
  }
  std::printf("%zu of %zu schedules compile; refused:\n", legal, texts.size());
  for (const auto& [reason, points] : refusals) std::printf("  %5zu  %s\n", points, reason.c_str());
  for (const SpaceParameter& parameter : space.parameters)
    for (const std::string_view value : parameter.values)
      EXPECT_TRUE(compiling.contains(std::string(value)) || value == "probability")
          << parameter.name << "=" << value;
}

}  // namespace
}  // namespace forestvm::test::test_host_template
