// Golden files of the compiler, one per schedule in schedules/: the schedule, then the tiled forest, the loop
// nest before and after legalization, the program, and the compiler's warnings. FORESTVM_UPDATE=1 rewrites
// them; a new one starts as a file with only a schedule. The files of named schedules and of points of the
// GPU template are written from their names.
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/named_schedules.hpp>

#include "scheduler/choose/gpu_template.hpp"
#include "support/golden.hpp"
#include "support/schedule_case.hpp"
#include "support/test_name.hpp"

namespace forestvm {

/// Names the parameter in lists of tests.
static void PrintTo(const NamedSchedule& schedule, std::ostream* out) { *out << schedule.name; }

}  // namespace forestvm

namespace forestvm::test::test_golden_schedules {
namespace {

namespace fs = std::filesystem;
using support::ScheduleCase;

const fs::path kFolder = fs::path(FORESTVM_SOURCE_DIR) / "tests/golden/schedules";
const std::string kNamed = "named_", kTemplate = "template_";
const fs::path kModels = fs::path(FORESTVM_SOURCE_DIR) / "tests/golden/models";

/// Returns the whole file, made from its schedule.
std::string regenerated(ScheduleCase c) {
  std::string text = c.schedule;
  const Result<Schedule> schedule = parse_schedule(c.schedule);
  if (!schedule.ok()) return text + "--- refused\n" + schedule.error().text() + "\n";
  c.options.on_stage = [&](Stage stage, const std::function<std::string()>& print) {
    if (stage == Stage::Model) return;
    text += "--- " + std::string(kStageNames[static_cast<std::size_t>(stage)]) + "\n" + print();
  };
  const Result<Compiled> compiled = compile(c.model, *schedule, c.options);
  if (!compiled.ok()) return text + "--- refused\n" + compiled.error().text() + "\n";
  for (const std::string& warning : compiled->warnings) text += "--- warning\n" + warning + "\n";
  return text;
}

/// Schedules that are refused belong to tests/error.
void expect_lowered(const std::string& text) {
  EXPECT_EQ(text.find("--- refused"), std::string::npos) << text;
}

/// Lists the schedules that were written by hand.
std::vector<std::string> written_by_hand() {
  std::vector<std::string> names = support::case_names(kFolder);
  std::erase_if(
      names, [](const std::string& name) { return name.starts_with(kNamed) || name.starts_with(kTemplate); });
  return names;
}

class GoldenSchedule : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSchedule, IsAsReviewed) {
  const fs::path path = kFolder / (GetParam() + ".txt");
  const std::string text = regenerated(support::read_case(path));
  expect_lowered(text);
  support::expect_golden(path.string(), text);
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenSchedule, testing::ValuesIn(written_by_hand()),
                         [](const auto& test) { return support::test_name(test.param); });

/// Compares the golden file of a schedule that a function wrote for the small model.
void expect_golden_of(const std::string& file, const std::string& title, const Schedule& schedule) {
  const std::string text =
      regenerated({"# " + title + "\n" + print(schedule), support::small_model("small"), {}});
  expect_lowered(text);
  support::expect_golden((kFolder / (file + ".txt")).string(), text);
}

class GoldenNamedSchedule : public testing::TestWithParam<NamedSchedule> {};

TEST_P(GoldenNamedSchedule, IsAsReviewed) {
  const NamedSchedule& named = GetParam();
  expect_golden_of(kNamed + std::string(named.name), std::string(named.meaning),
                   *schedule_by_name(support::small_model("small"), named.name));
}

INSTANTIATE_TEST_SUITE_P(Names, GoldenNamedSchedule, testing::ValuesIn(named_schedules()),
                         [](const auto& test) { return support::test_name(std::string(test.param.name)); });

/// Compares two points of the template: all options on, and all options off.
TEST(GoldenTemplatePoints, AreAsReviewed) {
  for (const std::size_t index : {std::size_t{0}, scheduler::kGpuTemplatePoints - 1}) {
    const scheduler::GpuTemplatePoint point = scheduler::gpu_template_point(index);
    expect_golden_of(kTemplate + print(point), "the GPU template at " + print(point),
                     gpu_template_schedule(support::small_model("small"), point));
  }
}

TEST(GoldenSchedules, EveryNamedFileIsANamedSchedules) {
  std::set<std::string> names;
  for (const NamedSchedule& named : named_schedules()) names.insert(kNamed + std::string(named.name));
  for (const std::string& file : support::case_names(kFolder))
    EXPECT_TRUE(!file.starts_with(kNamed) || names.contains(file)) << file << " is left over: remove it";
}

class GoldenModel : public testing::TestWithParam<std::string> {};

TEST_P(GoldenModel, PrintsAsReviewed) {
  const Model model = support::small_model(GetParam());
  CompileOptions options;
  std::string text;
  options.on_stage = [&](Stage stage, const std::function<std::string()>& print) {
    if (stage == Stage::Model || stage == Stage::Tiled)
      text += "--- " + std::string(kStageNames[static_cast<std::size_t>(stage)]) + "\n" + print();
  };
  const Result<Compiled> compiled = compile(model, {}, options);
  ASSERT_TRUE(compiled.ok()) << compiled.error().text();
  support::expect_golden((kModels / (GetParam() + ".txt")).string(), text);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenModel,
                         testing::Values("small", "two_outputs", "base_last", "deep", "leaves", "none",
                                         "categories"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace forestvm::test::test_golden_schedules
