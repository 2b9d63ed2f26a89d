// Schedules by name: every name is known for every model, can be printed and read back, and is for the
// backend that its row names; schedules that depend on the model are right for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/internal/nearest.hpp>
#include <forestvm/named_schedules.hpp>

#include "support/small_models.hpp"

namespace forestvm::test::test_named_schedules {
namespace {

using support::chain;
using support::model_of;
using support::small_model;

std::string text_of(const Model& model, std::string_view name, Contract contract = Contract::Trainer) {
  const Result<Schedule> schedule = schedule_by_name(model, name, contract);
  return schedule.ok() ? print(*schedule) : schedule.error().text();
}

/// Returns a forest of chains of these depths, in this order.
Model chains(const std::vector<std::uint32_t>& depths) {
  std::vector<Tree> trees;
  for (const std::uint32_t depth : depths) trees.push_back(chain(depth));
  return model_of(std::move(trees));
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Returns `trees` complete trees of depth 3 over three features.
Model complete(unsigned trees) {
  const Tree two = support::split(2, 0.5, support::leaf(1), support::leaf(2));
  const Tree four = support::split(1, 0.5, two, two);
  return model_of(std::vector<Tree>(trees, support::split(0, 0.5, four, four)));
}

/// Returns `trees` complete trees of depth 3, whose tests go over `features` features in turn.
Model complete_and_wide(unsigned trees, std::uint32_t features) {
  Model model = complete(trees);
  model.num_features = features;
  std::uint32_t feature = 0;
  for (Tree& tree : model.trees)
    for (Node& node : tree.nodes)
      if (node.kind != NodeKind::Leaf) node.feature = feature++ % model.num_features;
  return model;
}

/// Encoding rows takes longer than it saves, unless trees read them often and their values would fill the shared
/// memory, which holds codes of more rows.
TEST(NamedSchedules, GpuTakesRankCodesWhereTheyCostLess) {
  const std::string few = text_of(complete(10), "gpu", Contract::Reproducible),
                    narrow = text_of(complete(400), "gpu", Contract::Reproducible),
                    wide = text_of(complete_and_wide(6000, 128), "gpu", Contract::Trainer);
  EXPECT_EQ(count(few, "encode"), 0u);
  EXPECT_EQ(count(narrow, "encode"), 0u);
  EXPECT_GT(count(wide, "encode(u8)"), 0u) << wide;
  EXPECT_LT(count(wide, "encode(u8)"), count(wide, "plan(")) << wide;
  for (const std::string& text : {few, narrow, wide}) {
    EXPECT_EQ(count(text, ", array)"), count(text, "plan(")) << text;
    EXPECT_EQ(count(text, "cache(b0)"), count(text, "plan(")) << text;
  }
  const std::string deep = text_of(chains(std::vector<std::uint32_t>(100, 30)), "gpu");
  EXPECT_EQ(count(deep, "layout(t0, sparse)"), count(deep, "plan("));
}

TEST(NamedSchedules, GpuSpreadsTreesWhereTheContractAllowsAnyOrder) {
  const Model model = complete(200);
  for (const Contract contract : {Contract::Reproducible, Contract::Fast}) {
    const std::string text = text_of(model, "gpu", contract);
    EXPECT_GT(count(text, "sharedReduce(t0)"), 0u) << text;
    EXPECT_LT(count(text, "sharedReduce(t0)"), count(text, "plan("))
        << text;  // many rows give threads enough work
  }
  EXPECT_EQ(count(text_of(model, "gpu"), "sharedReduce"), 0u);
}

/// Lanes of 32 rows walk one tree: blocks of 32 rows of 1,024 values have 128 kB of shared memory. Blocks of the plan
/// for the fewest rows fit into 40 kB, which every GPU has.
TEST(NamedSchedules, GpuStagesWideRowsIfTreesReadThemOften) {
  const std::string often = text_of(complete_and_wide(1000, 1024), "gpu", Contract::Reproducible);
  EXPECT_EQ(count(often, "cache(b0)"), count(often, "plan(")) << often;
  const std::string fewest = often.substr(0, often.find("plan(", 1)),
                    most = often.substr(often.rfind("plan("));
  EXPECT_EQ(count(fewest, "tile(batch, b0, b1, 1)") + count(fewest, "tile(batch, b0, b1, 4)") +
                count(fewest, "tile(batch, b0, b1, 8)"),
            1u)
      << often;
  EXPECT_EQ(count(most, "tile(batch, b0, b1, 32)"), 1u) << often;
  const std::string rarely = text_of(complete_and_wide(4, 1024), "gpu", Contract::Reproducible);
  EXPECT_LT(count(rarely, "cache(b0)"), count(rarely, "plan(")) << rarely;
  Model model = complete(10);
  model.num_features = 50'000;  // not even one row of values fits, and codes do not pay
  EXPECT_EQ(count(text_of(model, "gpu"), "cache(b0)"), 0u);
}

TEST(NamedSchedules, EveryNameIsKnownForEveryModel) {
  for (const char* model_name : {"none", "leaves", "small", "deep", "two_outputs", "wide"}) {
    const Model model = small_model(model_name);
    EXPECT_TRUE(schedule_by_name(model, "auto").ok());
    for (const NamedSchedule& named : named_schedules()) {
      const Result<Schedule> schedule = schedule_by_name(model, named.name);
      ASSERT_TRUE(schedule.ok()) << named.name << ": " << schedule.error().text();
      EXPECT_TRUE(check_schedule(*schedule).ok()) << named.name;
      const Result<Schedule> again = parse_schedule(print(*schedule));
      ASSERT_TRUE(again.ok()) << named.name;
      EXPECT_EQ(*again, *schedule) << named.name;
    }
  }
}

TEST(NamedSchedules, NamesAndSchedulesAreDistinct) {
  const Model model = small_model("small");
  std::set<std::string> names, texts;
  for (const NamedSchedule& named : named_schedules()) {
    EXPECT_TRUE(names.insert(std::string(named.name)).second) << named.name;
    EXPECT_TRUE(texts.insert(text_of(model, named.name)).second) << named.name;
    EXPECT_EQ(named.name.find_first_of("/. "), std::string::npos) << named.name << " reads as a file";
    EXPECT_FALSE(named.meaning.empty()) << named.name;
  }
}

TEST(NamedSchedules, ThoseForGpusMapLoopsAndOthersDoNot) {
  const Model model = small_model("small");
  for (const NamedSchedule& named : named_schedules()) {
    const bool mapped = text_of(model, named.name).find("gpuDimension") != std::string::npos;
    EXPECT_EQ(mapped, named.backend == ScheduleBackend::Gpu) << named.name;
  }
}

TEST(NamedSchedules, AnUnknownNameIsRefusedWithAllNames) {
  const Result<Schedule> schedule = schedule_by_name(small_model("small"), "nonsense");
  ASSERT_FALSE(schedule.ok());
  EXPECT_EQ(schedule.error().where, "schedule 'nonsense'");
  const std::string message = schedule.error().message + ",";
  EXPECT_TRUE(message.starts_with("unknown; the named schedules are auto, ")) << message;
  for (const NamedSchedule& named : named_schedules())
    EXPECT_NE(message.find(", " + std::string(named.name) + ","), std::string::npos) << named.name;
  EXPECT_TRUE(schedule_by_name(small_model("small"), "row-8")
                  .error()
                  .message.starts_with("unknown; did you mean 'rows-8'? The named schedules are auto, "));
}

TEST(Nearest, CountsEditsOfALetter) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("tile", "tile"), 0u);
  EXPECT_EQ(edit_distance("", "tile"), 4u);
  EXPECT_EQ(edit_distance("tyle", "tile"), 1u);
  EXPECT_EQ(edit_distance("tle", "tile"), 1u);
  EXPECT_EQ(edit_distance("tille", "tile"), 1u);
  EXPECT_EQ(edit_distance("tiel", "tile"), 1u);  // two letters exchanged
  EXPECT_EQ(edit_distance("itle", "tile"), 1u);
  EXPECT_EQ(edit_distance("split", "tile"), 4u);
}

TEST(Nearest, IsNoWordOfOtherLetters) {
  const std::vector<std::string_view> known = {"out", "count", "verify", "version"};
  const auto hint = [&](std::string_view word) { return did_you_mean(word, known); };
  EXPECT_EQ(hint("cout"), "; did you mean 'count'?");  // not out, which begins differently
  EXPECT_EQ(hint("verfiy"), "; did you mean 'verify'?");
  EXPECT_EQ(hint("versoinn"), "; did you mean 'version'?");
  for (const char* word : {"", "o", "abc", "variation", "outputs"}) EXPECT_EQ(hint(word), "") << word;
  EXPECT_EQ(hint(std::string(65, 'v')), "");
  EXPECT_EQ(did_you_mean("out", {}), "");
}

TEST(PaperFigures, SplitTheTreesAtEachDepth) {
  EXPECT_EQ(text_of(small_model("small"), "paper-fig-1b"),
            "orderTrees(depth)\n"
            "reorder(tree, batch)\n"
            "split(tree, depth1, deeper1, 2)\n"
            "split(deeper1, depth2, depth3, 2)\n"
            "unrollWalk(depth1.batch)\n"
            "unrollWalk(depth2.batch)\n"
            "unrollWalk(depth3.batch)\n");
  EXPECT_EQ(text_of(chains({5, 2, 5}), "paper-fig-1c"),
            "orderTrees(depth)\n"
            "gpuDimension(batch, grid.x)\n"
            "split(tree, depth2, depth5, 1)\n"
            "tile(depth2, t0_depth2, t1_depth2, 64)\n"
            "gpuDimension(t1_depth2, block.x)\n"
            "unrollWalk(t1_depth2)\n"
            "tile(depth5, t0_depth5, t1_depth5, 64)\n"
            "gpuDimension(t1_depth5, block.x)\n"
            "unrollWalk(t1_depth5)\n");
}

TEST(PaperFigures, DoNotSplitTreesOfOneDepth) {
  for (const Model& model : {chains({4, 4, 4}), small_model("leaves"), small_model("none")}) {
    EXPECT_EQ(text_of(model, "paper-fig-1b"),
              "orderTrees(depth)\nreorder(tree, batch)\nunrollWalk(tree.batch)\n");
    EXPECT_EQ(text_of(model, "paper-fig-1c"),
              "orderTrees(depth)\ngpuDimension(batch, grid.x)\ntile(tree, t0_tree, t1_tree, 64)\n"
              "gpuDimension(t1_tree, block.x)\nunrollWalk(t1_tree)\n");
  }
}

TEST(PaperFigures, JoinDepthsThatAreManySoThatLittleIsPadded) {
  // Ten depths. Joining 20 with 21 costs one padded step; 2 with 3 (and 3 with 4, …) costs two; all others
  // cost more.
  const std::string text =
      text_of(chains({1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 9, 20, 21}), "paper-fig-1b");
  EXPECT_EQ(count(text, "split("), 7u) << text;
  EXPECT_EQ(count(text, "unrollWalk("), 8u) << text;
  EXPECT_NE(text.find("split(tree, depth1, deeper1, 3)"), std::string::npos) << text;
  EXPECT_NE(text.find("split(deeper1, depth3, deeper3, 4)"), std::string::npos) << text;  // 2 joined with 3
  EXPECT_NE(text.find("split(deeper7, depth9, depth21, 1)"), std::string::npos) << text;  // 20 joined with 21
}

TEST(PaperFigures, TakeManyDepthsOneByOne) {
  std::vector<std::uint32_t> depths;
  for (std::uint32_t depth = 60; depth > 0; --depth) depths.push_back(depth);
  const std::string text = text_of(chains(depths), "paper-fig-1c");
  EXPECT_EQ(count(text, "unrollWalk("), 8u) << text;
}

TEST(RapidsFil, SpreadsTheTreesOverAFixedNumberOfThreads) {
  const auto run = [](std::size_t trees) {
    const std::string text = text_of(chains(std::vector<std::uint32_t>(trees, 1)), "rapids-fil");
    const std::size_t at = text.find("tile(tree, t0, t1, ");
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(run(0), "tile(tree, t0, t1, 1)");
  EXPECT_EQ(run(256), "tile(tree, t0, t1, 1)");
  EXPECT_EQ(run(257), "tile(tree, t0, t1, 2)");
  EXPECT_EQ(run(1000), "tile(tree, t0, t1, 4)");
}

}  // namespace
}  // namespace forestvm::test::test_named_schedules
