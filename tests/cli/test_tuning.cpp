// The search of forestvm tune as a function: what it says of itself when it is ended early, and what the next search
// makes of that. Times are not tested.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/named_schedules.hpp>

#include "cli/tuning.hpp"

namespace forestvm::cli::test_tuning {
namespace {

/// Returns a model of stumps on two features.
Model stumps() {
  Model model;
  model.num_features = 2;
  model.base = {0};
  for (std::uint32_t i = 0; i < 12; ++i) {
    Tree tree;
    tree.nodes.resize(3);
    tree.nodes[0] = {.threshold = i / 2.0, .left = 1, .right = 2, .feature = i % 2, .kind = NodeKind::Less};
    tree.nodes[1].value = i;
    model.trees.push_back(tree);
  }
  return model;
}

class Tuner : public testing::Test {
 protected:
  Tuner() {
    options_.batches = {1, 64};
    options_.compile.strict = true;
    options_.budget = Seconds(600);
    Schedule schedule = automatic_schedule(model_);
    Program program = compile(model_, schedule, options_.compile)->program;
    rows_ = repeated_rows("", {}, program, 64).value();
    automatic_ = {"auto", std::move(schedule), std::move(program)};
  }

  /// Searches until the search has asked `questions` times whether it was interrupted.
  Tuning tuned(std::size_t questions) const {
    std::size_t asked = 0;
    return tune(
               model_, *automatic_, options_, rows_, [&] { return asked++ >= questions; },
               [](const TuningProgress&) {})
        .value();
  }

  static bool has_partial_trials(const Tuning& tuning) {
    return std::any_of(tuning.trials.begin(), tuning.trials.end(), [](const Trial& trial) {
      return std::find(trial.of_auto.begin(), trial.of_auto.end(), 0.0) != trial.of_auto.end();
    });
  }

  const Model model_ = stumps();
  TuningOptions options_;
  RepeatedRows rows_;
  std::optional<Automatic> automatic_;
};

TEST_F(Tuner, IsCompleteOnlyIfAllBatchesWereMeasured) {
  std::size_t questions = 0, partial = 0;
  std::vector<Trial> last_partial;
  for (; questions < 1000; ++questions) {
    const Tuning tuning = tuned(questions);
    EXPECT_EQ(tuning.partial != 0, has_partial_trials(tuning)) << questions;
    if (tuning.is_complete()) {
      EXPECT_FALSE(has_partial_trials(tuning)) << questions;
      break;
    }
    if (tuning.partial == 0) continue;
    ++partial;
    last_partial = tuning.trials;
  }
  ASSERT_LT(questions, 1000u);
  EXPECT_GT(partial, 0u);
  options_.earlier = last_partial;
  const Tuning resumed = tuned(2 * questions);
  EXPECT_TRUE(resumed.is_complete());
  EXPECT_FALSE(has_partial_trials(resumed));
}

/// Where `auto` stays, the plan that was measured says so; plans for other CPUs and other rows say what they said.
TEST_F(Tuner, SaysOfThePlansThatWereMeasuredThatTheyWere) {
  options_.backend.host.target = "baseline";
  options_.machine = "a machine";
  const Schedule schedule =
      parse_schedule(
          "plan(1)  # one\nlayout(tree, sparse)\nplan(100, avx2)  # narrow\nlayout(tree, array)\n"
          "plan(100)  # wide\nlayout(tree, sparse)\nplan(BATCH)  # many\nlayout(tree, array)\n")
          .value();
  automatic_ = {"auto", schedule, compile(model_, schedule, options_.compile)->program};
  std::vector<std::string> remarks;
  for (const Directive& directive : tuned(0).schedule.directives)
    if (directive.kind == DirectiveKind::Plan) remarks.push_back(directive.remark);
  ASSERT_EQ(remarks.size(), 6u);
  EXPECT_TRUE(remarks[0].starts_with("one; measured at 1 row: ")) << remarks[0];
  EXPECT_TRUE(remarks[0].ends_with(", on a machine")) << remarks[0];
  EXPECT_EQ(remarks[1], "narrow");
  EXPECT_EQ(remarks[2], "wide");
  EXPECT_EQ(remarks[3], "narrow");
  EXPECT_TRUE(remarks[4].starts_with("wide; measured at 64 rows: ")) << remarks[4];
  EXPECT_EQ(remarks[5], "many");
}

}  // namespace
}  // namespace forestvm::cli::test_tuning
