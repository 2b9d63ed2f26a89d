// Programs mapped to a GPU launch, on the host: the host refuses to run them, so each is taken apart and put
// together again with its mapped loops as parallel ones. Their iterations are as independent of each other,
// so the answers must be the same: under contract reproducible, bit for bit those of the default schedule on
// the host.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/names.hpp>

#include "random_forest.hpp"
#include "scheduler/choose/gpu_template.hpp"
#include "support/small_models.hpp"

namespace forestvm::test {
namespace {

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

/// The same program for the host.
Result<Program> unmapped(const Program& program) {
  std::string text = program.disassemble();
  for (unsigned i = 0; is_declared(static_cast<LaunchDimension>(i)); ++i)
    replace_all(text, ", " + std::string(name_of(static_cast<LaunchDimension>(i))) + ",", ",");
  replace_all(text, " map ", " par ");
  replace_all(text, ", shared,", ", plain,");
  return assemble(text, program);
}

struct Scores {
  std::vector<float> raw;
  std::vector<std::int32_t> leaves;
  bool operator==(const Scores&) const = default;
};

Scores scores(const Program& program, const std::vector<float>& rows, unsigned threads) {
  const ProgramMeta& meta = program.meta();
  const auto predictor = host_backend(program, {threads, "auto"});
  EXPECT_TRUE(predictor.ok()) << predictor.error().text();
  const auto context = (*predictor)->make_context();
  const RowBlock block{rows.data(), rows.size() / meta.num_features, meta.num_features};
  Scores result{std::vector<float>(block.count * meta.num_outputs),
                std::vector<std::int32_t>(block.count * meta.num_trees)};
  EXPECT_TRUE((*predictor)->predict(*context, block, OutputKind::Raw, result.raw.data()).ok());
  EXPECT_TRUE((*predictor)->predict_leaf(*context, block, result.leaves.data()).ok());
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
    expected_ = scores(*reproducible(model_, {}), rows_, 1);
  }

  /// Nothing if it is refused with a place, or right; else what is wrong.
  void check(const Schedule& schedule, const std::string& name) {
    const auto program = reproducible(model_, schedule);
    if (!program.ok()) {
      ++refused_;
      EXPECT_FALSE(program.error().where.empty()) << name << ": " << program.error().text();
      return;
    }
    ++ran_;
    EXPECT_EQ(host_backend(*program).ok(), !program->mapped()) << name;
    const auto host = unmapped(*program);
    ASSERT_TRUE(host.ok()) << name << ": " << host.error().text() << "\n" << program->disassemble();
    EXPECT_TRUE(scores(*host, rows_, 1 + ran_ % 2) == expected_) << name << "\n" << print(schedule);
  }

  Model model_;
  std::vector<float> rows_;
  Scores expected_;
  unsigned ran_ = 0, refused_ = 0;
};

TEST_F(MappedPrograms, EveryNamedOne) {
  for (const NamedSchedule& named : named_schedules()) {
    const auto schedule = schedule_by_name(model_, named.name);
    ASSERT_TRUE(schedule.ok());
    check(*schedule, std::string(named.name));
    if (HasFailure()) return;
  }
  EXPECT_EQ(refused_, 0u);
}

TEST_F(MappedPrograms, EveryPointOfTheTemplate) {
  for (std::size_t i = 0; i < scheduler::kGpuTemplatePoints; ++i) {
    const auto point = scheduler::gpu_template_point(i);
    check(scheduler::gpu_template_schedule(model_, point), scheduler::print(point));
    if (HasFailure()) return;
  }
  std::printf("%u points ran, %u were refused\n", ran_, refused_);
  EXPECT_GT(ran_, 4000u);
}

}  // namespace
}  // namespace forestvm::test
