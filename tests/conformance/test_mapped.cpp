// Programs mapped to a GPU launch, in the emulator: under contract reproducible the answers equal the default
// schedule's on the host, bit for bit, whatever the order in which threads run. Those of `gpu` also do under trainer.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/named_schedules.hpp>

#include "random_forest.hpp"
#include "scheduler/choose/gpu_template.hpp"
#include "support/nightly.hpp"
#include "support/small_models.hpp"

namespace forestvm::test::test_mapped {
namespace {

struct Scores {
  std::vector<float> raw;
  std::vector<std::int32_t> leaves;
  bool operator==(const Scores&) const = default;
};

Scores scores(const Predictor& predictor, const std::vector<float>& rows) {
  const ProgramMeta& meta = predictor.program().meta();
  const auto context = predictor.make_context();
  const RowBlock block{rows.data(), rows.size() / meta.num_features, meta.num_features};
  Scores result{std::vector<float>(block.count * meta.num_outputs),
                std::vector<std::int32_t>(block.count * meta.num_trees)};
  const auto raw = predictor.predict(*context, block, OutputKind::Raw, result.raw.data());
  EXPECT_TRUE(raw.ok()) << raw.error().text();
  const auto leaves = predictor.predict_leaf(*context, block, result.leaves.data());
  EXPECT_TRUE(leaves.ok()) << leaves.error().text();
  return result;
}

Result<Program> reproducible(const Model& model, const Schedule& schedule) {
  CompileOptions options;
  options.contract = Contract::Reproducible;
  FVM_ASSIGN(const Compiled compiled, compile(model, schedule, options));
  return compiled.program;
}

class MappedPrograms : public testing::Test {
 protected:
  MappedPrograms() {
    std::vector<Tree> trees;
    for (int i = 0; i < 10; ++i)
      for (const Tree& tree : support::six_trees()) trees.push_back(tree);
    model_ = support::model_of(trees, 2);
    Dice dice(7);
    rows_ = random_rows(dice, model_, 40);
    expected_ = scores(**host_backend(*reproducible(model_, {})), rows_);
  }

  /// Expects that the schedule is refused with a place, or that the program's answers are right.
  void check(const Schedule& schedule, const std::string& name) {
    const auto program = reproducible(model_, schedule);
    if (!program.ok()) {
      ++refused_;
      EXPECT_FALSE(program.error().where.empty()) << name << ": " << program.error().text();
      return;
    }
    EXPECT_EQ(host_backend(*program).ok(), !program->mapped()) << name;
    const auto predictor = emulator_backend(*program, {++seed_});
    if (!program->mapped()) {
      EXPECT_FALSE(predictor.ok()) << name;
      return;
    }
    if (!predictor.ok()) {
      ++refused_;
      EXPECT_EQ(predictor.error().code, ErrorCode::Refused) << name << ": " << predictor.error().text();
      return;
    }
    ++ran_;
    EXPECT_TRUE(scores(**predictor, rows_) == expected_) << name << "\n" << print(schedule);
  }

  Model model_;
  std::vector<float> rows_;
  Scores expected_;
  unsigned ran_ = 0, refused_ = 0;
  std::uint64_t seed_ = 0;
};

TEST_F(MappedPrograms, EveryNamedOne) {
  for (const NamedSchedule& named : named_schedules()) {
    const auto schedule = schedule_by_name(model_, named.name, Contract::Reproducible);
    ASSERT_TRUE(schedule.ok());
    check(*schedule, std::string(named.name));
    if (HasFailure()) return;
  }
  EXPECT_EQ(refused_, 0u);
}

/// Returns the plans of a schedule, each as a schedule for calls of any number of rows.
std::vector<Schedule> plans_of(const Schedule& schedule) {
  std::vector<Schedule> plans;
  for (const Directive& directive : schedule.directives)
    if (directive.kind == DirectiveKind::Plan)
      plans.emplace_back();
    else
      plans.back().directives.push_back(directive);
  return plans;
}

TEST(ScheduleGpu, EveryPlanAnswersAsTheHost) {
  std::set<std::string> checked;
  for (const auto& [features, copies, outputs] :
       {std::array<std::uint32_t, 3>{8, 4, 1}, {8, 40, 2}, {700, 40, 1}, {3000, 20, 1}, {20'000, 4, 1}})
    for (const Contract contract : {Contract::Trainer, Contract::Reproducible}) {
      std::vector<Tree> trees;
      for (std::uint32_t i = 0; i < copies; ++i)
        for (const Tree& tree : support::six_trees()) trees.push_back(tree);
      Model model = support::model_of(trees, outputs);
      model.num_features = features;
      CompileOptions options;
      options.contract = contract;
      options.strict = true;
      Dice dice(features);
      const std::vector<float> rows = random_rows(dice, model, 37);
      const auto host = compile(model, {}, options);
      ASSERT_TRUE(host.ok());
      const Scores expected = scores(**host_backend(host->program), rows);
      for (const Schedule& plan : plans_of(*schedule_by_name(model, "gpu", contract))) {
        if (!checked.insert(formatted("{} {} {} {}", features, copies, name_of(contract), print(plan)))
                 .second)
          continue;
        const auto mapped = compile(model, plan, options);
        ASSERT_TRUE(mapped.ok()) << mapped.error().text();
        const auto emulated = emulator_backend(mapped->program, {checked.size()});
        ASSERT_TRUE(emulated.ok()) << emulated.error().text();
        EXPECT_TRUE(scores(**emulated, rows) == expected) << features << " features\n" << print(plan);
      }
    }
  EXPECT_GT(checked.size(), 15u);
}

TEST_F(MappedPrograms, EveryPointOfTheTemplate) {
  const std::vector<std::size_t> points = support::sampled(scheduler::kGpuTemplatePoints, 1000);
  for (const std::size_t i : points) {
    const auto point = scheduler::gpu_template_point(i);
    check(scheduler::gpu_template_schedule(model_, point), scheduler::print(point));
    if (HasFailure()) return;
  }
  std::printf("%u points ran, %u were refused\n", ran_, refused_);
  EXPECT_GT(ran_, points.size() * 3 / 4);
}

}  // namespace
}  // namespace forestvm::test::test_mapped
