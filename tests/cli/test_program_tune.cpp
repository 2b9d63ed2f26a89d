// forestvm tune through the real program: the list of a space, what a search writes, and what is refused. Times are not
// tested.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli {
namespace {

class Tune : public ProgramTest {
 protected:
  const std::string model_ = test_data("diabetes/model.json"), rows_ = test_data("diabetes/rows.npy");

  void expect_refused(const std::vector<std::string>& words, int code, const std::string& part) const {
    const Outcome outcome = forestvm(words);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }
};

TEST_F(Tune, ListsTheSpacesWithReasons) {
  const Outcome gpu =
      forestvm({"tune", model_, "--rounds", ":20", "--list-space", "gpu", "--contract", "fast"});
  EXPECT_EQ(gpu.code, 0) << gpu.err;
  for (const char* part : {"# space gpu: 5184 points\n", "# tree-threads: 2 10 20 50; ",
                           "\n0\tlegal\trows-per-block=8 rows-per-thread=1 tree-threads=2 cache-rows=yes ",
                           "\ttile(batch, b0, b, 8); tile(", "\n5183\t",
                           "makes blocks of 1280 threads, at most 1024: tile it smaller\n"})
    EXPECT_NE(gpu.out.find(part), std::string::npos) << part;
  const Outcome host = forestvm({"tune", model_, "--rounds", ":20", "--list-space", "host"});
  EXPECT_EQ(host.code, 0) << host.err;
  for (const char* part :
       {"# space host: 20480 points\n",
        "\n0\tlegal\tparallel=none block=16 lanes=rows interleave=1 layout=array ",
        "\trefused\tparallel=trees ",
        "parallel(t0): trees in parallel are summed in another order than the trainer's", "\tsame\t",
        "has the schedule of point ", " with the schedule of an earlier point\n"})
    EXPECT_NE(host.out.find(part), std::string::npos) << part;
}

TEST_F(Tune, WritesAProgramWithAPlanForEachBatch) {
  const Outcome tuned = forestvm({"tune", model_, rows_, "-o", file("t.fvm"), "--batch", "64,1", "--budget",
                                  "2s", "--report", file("t.json")});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_EQ(tuned.out, "");
  for (const char* part :
       {"schedules ", " refused, of ", "auto us/row", "\n       1 ", "\n      64 ", "wrote "})
    EXPECT_NE(tuned.err.find(part), std::string::npos) << part << tuned.err;
  EXPECT_EQ(forestvm({"verify", file("t.fvm")}).code, 0);
  EXPECT_EQ(forestvm({"run", file("t.fvm"), rows_}).out, forestvm({"run", model_, rows_}).out);

  const auto report = nlohmann::json::parse(content_of(file("t.json")));
  ASSERT_EQ(report["batches"].size(), 2U);
  EXPECT_EQ(report["strategy"], "heuristic");
  EXPECT_NE(report["machine"].get<std::string>().find("target "), std::string::npos);
  EXPECT_EQ(report["batches"][0]["batch"], 1);
  EXPECT_EQ(report["batches"][1]["batch"], 64);
  for (const auto& batch : report["batches"]) {
    EXPECT_GT(batch["auto_us_per_row"].get<double>(), 0);
    ASSERT_GE(batch["finalists"].size(), 2U);
    int automatic = 0;
    for (const auto& finalist : batch["finalists"]) {
      automatic += finalist["name"] == "auto" ? 1 : 0;
      EXPECT_GT(finalist["us_per_row"].get<double>(), 0);
      const std::string schedule = write("f.schedule", finalist["schedule"].get<std::string>());
      EXPECT_EQ(forestvm({"compile", model_, "-o", file("f.fvm"), "--schedule", schedule}).code, 0);
    }
    EXPECT_EQ(automatic, 1);
  }

  const auto shown = nlohmann::json::parse(forestvm({"inspect", "--json", file("t.fvm")}).out);
  ASSERT_GE(shown["plan"].size(), 1U);
  EXPECT_EQ(shown["plan"][0]["because"].get<std::string>().find("measured at 1 row: "), 0U) << shown["plan"];
  const std::string text = forestvm({"inspect", file("t.fvm")}).out;
  EXPECT_NE(text.find("  because "), std::string::npos) << text;
  EXPECT_NE(text.find(", target "), std::string::npos) << text;
  EXPECT_NE(
      forestvm({"bench", file("t.fvm"), "--batch", "1", "--seconds", "0.001"}).out.find("\nplan      for "),
      std::string::npos);
}

TEST_F(Tune, ASignalEndsTheSearchAndKeepsTheBest) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto interrupt = [&](pid_t program) {
      while (content_of(file("stderr")).find("Ctrl-C ends the search") == std::string::npos)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ::kill(program, signal);
    };
    const Outcome tuned =
        forestvm({"tune", model_, "-o", file("s.fvm"), "--strategy", "exhaustive", "--budget", "1h"},
                 {.meanwhile = interrupt});
    EXPECT_EQ(tuned.code, 0) << tuned.err;
    EXPECT_NE(tuned.err.find("stopped by a signal; keeping the best so far\n"), std::string::npos)
        << tuned.err;
    EXPECT_EQ(forestvm({"verify", file("s.fvm")}).code, 0);
    std::filesystem::remove(file("s.fvm"));
  }
}

TEST_F(Tune, RefusesBadCommandLines) {
  expect_refused({"tune"}, 2, "argument MODEL is missing");
  expect_refused({"tune", model_}, 2, "-o OUT.fvm is missing");
  const auto with = [&](const std::string& option, const std::string& value) {
    return std::vector<std::string>{"tune", model_, "-o", file("x.fvm"), option, value};
  };
  expect_refused({"tune", model_, "-o", model_}, 2, "would overwrite the input");
  expect_refused(with("--report", file("x.fvm")), 2, "--report and -o name one file");
  for (const char* budget : {"0", "-1s", "x", "s", "25h", "1 m", "nan"})
    expect_refused(with("--budget", budget), 2, "expected a time above 0, at most 24h, such as 30s or 2m");
  expect_refused(with("--batch", "0"), 2, "--batch '0': expected whole numbers from 1 to 16777216");
  expect_refused(with("--batch", "1,2,3,4,5,6,7,8,9"), 2, "--batch: more than 8 numbers of rows");
  expect_refused(with("--threads", "0"), 2, "--threads '0'");
  expect_refused(with("--strategy", "best"), 2, "--strategy 'best': expected one of heuristic, exhaustive");
  expect_refused(with("--target", "z80"), 2, "z80");
  expect_refused({"tune", model_, test_data("digits/rows.npy"), "-o", file("x.fvm")}, 1,
                 "has 64 columns, the model has 10 features");
  expect_refused({"tune", file("absent"), "-o", file("x.fvm")}, 3, "absent");
  expect_refused({"tune", model_, "--list-space", "cpu"}, 2, "--list-space 'cpu': expected one of host, gpu");
  ASSERT_EQ(forestvm({"compile", model_, "-o", file("m.fvm")}).code, 0);
  expect_refused({"tune", file("m.fvm"), "--list-space", "host"}, 2,
                 "is a program, which has its schedule already: tune the model");
}

/// Returns the milliseconds of a part in the table of run --profile; -1 if it is not there.
double part_of(const std::string& table, const std::string& part) {
  const std::size_t at = table.find("\n  " + part + " ");
  return at == std::string::npos ? -1 : std::stod(table.substr(at + part.size() + 3));
}

TEST_F(Tune, ProfilesOfRunsHaveAllParts) {
  const std::string expected = forestvm({"run", model_, rows_, "--output", "raw"}).out;
  const Outcome coded = forestvm({"run", model_, rows_, "--output", "raw", "--profile", "--threads", "1"});
  EXPECT_EQ(coded.code, 0) << coded.err;
  EXPECT_EQ(coded.out, expected);
  EXPECT_TRUE(coded.err.starts_with("profile: 133 rows in 1 batch, host, target ")) << coded.err;
  for (const char* part : {"prepare", "read", "encode", "walk", "write"})
    EXPECT_GT(part_of(coded.err, part), 0) << part << coded.err;
  EXPECT_NE(coded.err.find("\n  plan for 65 rows and more: walks tables of codes, because "),
            std::string::npos)
      << coded.err;

  const Outcome few = forestvm({"run", model_, rows_, "--output", "raw", "--profile", "--batch", "4"});
  EXPECT_EQ(few.out, expected);
  EXPECT_NE(few.err.find("133 rows in 34 batches, "), std::string::npos) << few.err;
  EXPECT_NE(few.err.find("\n  plan for 1 to 6 rows: walks codes, because at 6 rows encoding 10 features "),
            std::string::npos)
      << few.err;
  EXPECT_EQ(few.err.find("65 rows and more"), std::string::npos) << few.err;

  const Outcome values =
      forestvm({"run", model_, rows_, "--output", "raw", "--profile", "--schedule", "rows-8"});
  EXPECT_EQ(values.out, expected);
  EXPECT_EQ(part_of(values.err, "encode"), 0) << values.err;
  EXPECT_GT(part_of(values.err, "walk"), 0) << values.err;
}

}  // namespace
}  // namespace forestvm::cli
