// Texts about the real program: help, version, suggestions for mistyped words, and schedules on the command
// line.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "spawn.hpp"

namespace forestvm::cli::test_program_help {
namespace {

class Help : public ProgramTest {
 protected:
  const std::string model_ = test_data("diabetes/model.json");
  const std::string rows_ = test_data("diabetes/rows.csv");

  std::string error_of(const std::vector<std::string>& words) const {
    const Outcome outcome = forestvm(words);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.code, 0);
    return outcome.err;
  }
};

TEST_F(Help, IsACommandToo) {
  EXPECT_EQ(forestvm({"help"}).out, forestvm({"--help"}).out);
  EXPECT_EQ(forestvm({"help"}).out, forestvm({"-h"}).out);
  for (const char* command :
       {"run", "explain", "proximity", "compile", "encode", "dump", "assemble", "export", "diff", "verify",
        "inspect", "bench", "tune", "devices", "help", "version"}) {
    const Outcome outcome = forestvm({"help", command});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with("forestvm " + std::string(command) + ": ")) << outcome.out;
    EXPECT_EQ(forestvm({command, "--help"}).out, outcome.out);
    EXPECT_NE(forestvm({"help"}).out.find("\n  " + std::string(command) + " "), std::string::npos) << command;
  }
  EXPECT_EQ(error_of({"help", "rum"}),
            "forestvm: help: there is no help on 'rum'; did you mean 'run'? (see forestvm help --help)\n");
  EXPECT_EQ(error_of({"help", "run", "compile"}),
            "forestvm: help: too many arguments (see forestvm help --help)\n");
}

TEST_F(Help, OfSchedulesHasEveryDirectiveAndName) {
  const std::string page = forestvm({"help", "schedules"}).out;
  for (const char* part :
       {"  tile(loop, new loop, new loop, size)", "  unrollWalk(loop, [count])",
        "strip-mines a loop: an outer loop over chunks", "  layout ", "treeTables", "  dimension", "grid.x",
        "N_TREES or BATCH", "\n  auto ", "\n  xgboost ", "\n  rapids-fil "})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST_F(Help, VersionIsACommandToo) {
  const std::string version = forestvm({"--version"}).out;
  EXPECT_EQ(forestvm({"version"}).out, version);
  EXPECT_EQ(forestvm({"-V"}).out, version);
}

TEST_F(Help, SaysWhatMayHaveBeenMeant) {
  EXPECT_EQ(error_of({"rnu"}),
            "forestvm: unknown command 'rnu'; did you mean 'run'? (see forestvm --help)\n");
  EXPECT_EQ(error_of({"complie", model_}),
            "forestvm: unknown command 'complie'; did you mean 'compile'? (see forestvm --help)\n");
  EXPECT_EQ(
      error_of({"run", model_, rows_, "--shedule", "auto"}),
      "forestvm: run: unknown option '--shedule'; did you mean '--schedule'? (see forestvm run --help)\n");
  EXPECT_EQ(error_of({"--verison"}),
            "forestvm: unknown option '--verison'; did you mean '--version'? (see forestvm --help)\n");
  EXPECT_NE(error_of({"run", model_, rows_, "--schedule", "xgbost"})
                .find("--schedule: schedule 'xgbost': unknown; did you mean 'xgboost'? The named schedules "
                      "are auto, "),
            std::string::npos);
  EXPECT_NE(error_of({"run", model_, rows_, "--schedule", "nonsense"})
                .find("schedule 'nonsense': unknown; the named schedules are auto, "),
            std::string::npos);
}

TEST_F(Help, SchedulesMayBeGivenAsText) {
  const std::string text = "tile(batch, b0, b1, 16); reorder(b0, tree, b1)";
  const std::string program = forestvm({"dump", model_, "--schedule", text}).out;
  EXPECT_EQ(forestvm({"dump", model_, "--schedule", write("s.txt", text)}).out, program);
  EXPECT_NE(forestvm({"dump", model_}).out, program);
  EXPECT_EQ(forestvm({"run", model_, rows_, "--schedule", text}).out, forestvm({"run", model_, rows_}).out);
  EXPECT_EQ(error_of({"run", model_, rows_, "--schedule", "tile(batch, b0, b1, 16); tyle(x)"}),
            "forestvm: --schedule: line 1, column 26: unknown directive 'tyle'; did you mean 'tile'?\n");
  EXPECT_EQ(error_of({"run", model_, rows_, "--schedule", "parallel(nowhere)"})
                .find("forestvm: --schedule: line 1, column 1"),
            0u);
}

}  // namespace
}  // namespace forestvm::cli::test_program_help
