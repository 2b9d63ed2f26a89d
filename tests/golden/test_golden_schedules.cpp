// Goldens of the compiler, one file per schedule in schedules/: the schedule, then the tiled forest, the loop
// nest before and after legalization, the program, and what the compiler warns of. Every named schedule has
// one. FORESTVM_UPDATE=1 rewrites them; a new one starts as a file that holds nothing but a schedule.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <forestvm/compile.hpp>

#include "support/golden.hpp"
#include "support/schedule_case.hpp"

namespace forestvm::test {
namespace {

namespace fs = std::filesystem;
using support::ScheduleCase;

const fs::path kFolder = fs::path(FORESTVM_SOURCE_DIR) / "tests/golden/schedules";
const fs::path kModels = fs::path(FORESTVM_SOURCE_DIR) / "tests/golden/models";

/// The whole file again, from its schedule.
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

class GoldenSchedule : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSchedule, IsAsReviewed) {
  const fs::path path = kFolder / (GetParam() + ".txt");
  const std::string text = regenerated(support::read_case(path));
  EXPECT_EQ(text.find("--- refused"), std::string::npos) << text;
  support::expect_golden(path.string(), text);
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenSchedule, testing::ValuesIn(support::case_names(kFolder)),
                         [](const auto& test) { return support::test_name(test.param); });

TEST(GoldenSchedules, EveryNamedScheduleHasOne) {
  for (const NamedSchedule& named : named_schedules()) {
    const fs::path path = kFolder / ("named_" + std::string(named.name) + ".txt");
    const std::string wanted = "# " + std::string(named.meaning) + "\n" + print(*parse_schedule(named.text));
    if (std::getenv("FORESTVM_UPDATE") != nullptr && !fs::exists(path)) {
      std::ofstream(path) << wanted;
      continue;
    }
    ASSERT_TRUE(fs::exists(path)) << path << ": FORESTVM_UPDATE=1 writes it";
    EXPECT_EQ(support::read_case(path).schedule, wanted) << path;
  }
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
                         testing::Values("small", "two_outputs", "base_last", "deep", "leaves", "none"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace forestvm::test
