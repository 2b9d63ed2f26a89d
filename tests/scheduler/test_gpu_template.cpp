// The GPU template: its 5,184 points are distinct, their schedules are distinct texts that read back, and
// each compiles or is refused with the place and the reason. The outcomes are counted and printed.
#include "scheduler/choose/gpu_template.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include <forestvm/compile.hpp>

#include "support/small_models.hpp"

namespace forestvm::test::test_gpu_template {
namespace {

using namespace scheduler;
using support::six_trees;
using support::small_model;

/// The number of points that compile for sixty small trees: only blocks of more than 1,024 threads are
/// refused (50 or 20 tree threads by 32 or 64 threads over rows: 288 points).
constexpr std::size_t kMinCompiling = 4896;

/// Returns small trees, more than the template has tree threads.
Model sixty_trees() {
  std::vector<Tree> trees;
  for (int i = 0; i < 10; ++i)
    for (Tree& tree : six_trees()) trees.push_back(std::move(tree));
  return support::model_of(std::move(trees));
}

/// Returns a refusal without its numbers, so that similar ones are counted together.
std::string kind_of(const std::string& text) {
  std::string kind;
  for (const char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    const bool in_name = !kind.empty() && std::isalnum(static_cast<unsigned char>(kind.back())) != 0;
    if (!digit || in_name)
      kind += c;
    else if (kind.empty() || kind.back() != '#')
      kind += '#';
  }
  return kind;
}

TEST(GpuTemplate, PointsAreTable5) {
  std::set<std::string> names;
  std::map<std::string, std::size_t> values;
  for (std::size_t i = 0; i < kGpuTemplatePoints; ++i) {
    const GpuTemplatePoint p = gpu_template_point(i);
    EXPECT_TRUE(names.insert(print(p)).second) << print(p);
    for (const std::string& value :
         {"rows per block " + std::to_string(p.rows_per_block),
          "rows per thread " + std::to_string(p.rows_per_thread),
          "tree threads " + std::to_string(p.tree_threads), "cache rows " + std::to_string(p.cache_rows),
          "cache trees " + std::to_string(p.cache_trees), "unroll " + std::to_string(p.unroll_walks),
          "interleave " + std::to_string(p.interleave), "shared " + std::to_string(p.shared_reduce),
          "layout " + std::string(p.layout)})
      ++values[value];
  }
  EXPECT_EQ(names.size(), 5184u);
  const std::map<std::string, std::size_t> table = {
      {"rows per block 8", 1728},  {"rows per block 32", 1728}, {"rows per block 64", 1728},
      {"rows per thread 1", 1728}, {"rows per thread 2", 1728}, {"rows per thread 4", 1728},
      {"tree threads 2", 1296},    {"tree threads 10", 1296},   {"tree threads 20", 1296},
      {"tree threads 50", 1296},   {"cache rows 0", 2592},      {"cache rows 1", 2592},
      {"cache trees 0", 2592},     {"cache trees 1", 2592},     {"unroll 0", 2592},
      {"unroll 1", 2592},          {"interleave 1", 1728},      {"interleave 2", 1728},
      {"interleave 4", 1728},      {"shared 0", 2592},          {"shared 1", 2592},
      {"layout array", 1728},      {"layout sparse", 1728},     {"layout reorg", 1728}};
  EXPECT_EQ(values, table);
}

TEST(GpuTemplate, NamesHaveAllParameters) {
  EXPECT_EQ(print(gpu_template_point(0)), "rpb8-rpt1-tt2-rows1-trees1-unroll1-il1-shared1-array");
  EXPECT_EQ(print(gpu_template_point(kGpuTemplatePoints - 1)),
            "rpb64-rpt4-tt50-rows0-trees0-unroll0-il4-shared0-reorg");
}

TEST(GpuTemplate, SchedulesAreDistinctAndReadBack) {
  for (const char* name : {"none", "small", "wide"}) {
    const Model model = small_model(name);
    std::set<std::string> texts;
    for (std::size_t i = 0; i < kGpuTemplatePoints; ++i) {
      const Schedule schedule = gpu_template_schedule(model, gpu_template_point(i));
      const std::string text = print(schedule);
      EXPECT_TRUE(texts.insert(text).second) << print(gpu_template_point(i)) << "\n" << text;
      const Result<Schedule> again = parse_schedule(text);
      ASSERT_TRUE(again.ok()) << again.error().text() << "\n" << text;
      EXPECT_EQ(*again, schedule) << text;
    }
  }
}

TEST(GpuTemplate, WritesWhatThePointSays) {
  GpuTemplatePoint point;
  point.rows_per_block = 64;
  point.rows_per_thread = 2;
  point.tree_threads = 20;
  EXPECT_EQ(print(gpu_template_schedule(sixty_trees(), point)),
            "tile(batch, b0, b, 64)\n"
            "tile(b, b1, b2, 2)\n"
            "tile(tree, t0, t, 60)\n"
            "tile(t, t1, t2, 3)\n"
            "reorder(b0, b1, t0, t1, t2, b2)\n"
            "gpuDimension(b0, grid.x)\n"
            "gpuDimension(b1, block.x)\n"
            "gpuDimension(t1, block.y)\n"
            "layout(t0, array)\n");
  point.cache_rows = point.cache_trees = point.unroll_walks = point.shared_reduce = true;
  point.interleave = 4;
  point.layout = "reorg";
  EXPECT_EQ(print(gpu_template_schedule(sixty_trees(), point)),
            "tile(batch, b0, b, 64)\n"
            "tile(b, b1, b2, 2)\n"
            "tile(tree, t0, t, 80)\n"
            "tile(t, t1, t2, 4)\n"
            "tile(t2, t3, t4, 4)\n"
            "reorder(b0, b1, t0, t1, b2, t3, t4)\n"
            "gpuDimension(b0, grid.x)\n"
            "gpuDimension(b1, block.x)\n"
            "gpuDimension(t1, block.y)\n"
            "cache(b0)\n"
            "cache(t0)\n"
            "unrollWalk(t4)\n"
            "interleave(t4)\n"
            "sharedReduce(t1)\n"
            "layout(t0, reorg)\n");
}

TEST(GpuTemplate, EveryPointCompilesOrIsRefusedWithPlaceAndReason) {
  const Model model = sixty_trees();
  std::map<std::string, std::size_t> refusals;
  std::size_t compiling = 0;
  for (std::size_t i = 0; i < kGpuTemplatePoints; ++i) {
    const GpuTemplatePoint point = gpu_template_point(i);
    const Schedule schedule = *parse_schedule(print(gpu_template_schedule(model, point)));
    const Result<Compiled> compiled = compile(model, schedule);
    if (compiled.ok()) {
      ++compiling;
      continue;
    }
    const Error& error = compiled.error();
    EXPECT_TRUE(error.where.starts_with("line ")) << print(point) << ": " << error.text();
    EXPECT_FALSE(error.message.empty()) << print(point);
    ++refusals[kind_of(error.message)];
  }
  std::printf("%zu of %zu points compile for 60 small trees; refused:\n", compiling, kGpuTemplatePoints);
  for (const auto& [reason, points] : refusals) std::printf("  %5zu  %s\n", points, reason.c_str());
  EXPECT_GE(compiling, kMinCompiling);
}

}  // namespace
}  // namespace forestvm::test::test_gpu_template
