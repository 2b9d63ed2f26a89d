// forestvm bench through the real program: the contents of its lines, and what it refuses. Times are not
// tested.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli::test_program_bench {
namespace {

class Bench : public ProgramTest {
 protected:
  const std::string model_ = test_data("diabetes/model.json");
  const std::string rows_ = test_data("diabetes/rows.npy");

  Outcome bench(std::vector<std::string> words) const {
    words.insert(words.begin(), {"bench", "--seconds", "0.002"});
    return forestvm(words);
  }
  nlohmann::json lines(std::vector<std::string> words) const {
    words.emplace_back("--json");
    const Outcome outcome = bench(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return nlohmann::json::parse(outcome.out);
  }
  void expect_refused(const std::vector<std::string>& words, int code, const std::string& part) const {
    const Outcome outcome = bench(words);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
};

TEST_F(Bench, HasALineForEachBatchAndThreadCount) {
  const auto page = lines({model_, rows_, "--batch", "1,3,1000", "--threads", "2,1"});
  ASSERT_EQ(page.size(), 6U);
  const std::vector<int> batches{1, 3, 1000, 1, 3, 1000}, threads{2, 2, 2, 1, 1, 1};
  for (std::size_t i = 0; i < page.size(); ++i) {
    const auto& line = page[i];
    EXPECT_EQ(line["model"], model_);
    EXPECT_EQ(line["batch"], batches[i]);
    EXPECT_EQ(line["threads"], threads[i]);
    EXPECT_EQ(line["target"], "auto");
    EXPECT_NE(line["schedule"].get<std::string>().find("batch"), std::string::npos);
    EXPECT_NE(line["rows"].get<std::string>().find("diabetes/rows.npy"), std::string::npos);
    EXPECT_GT(line["us_per_row_min"].get<double>(), 0);
    EXPECT_LE(line["us_per_row_min"].get<double>(), line["us_per_row_median"].get<double>());
    EXPECT_GE(line["calls"].get<int>(), 1);
    EXPECT_EQ(line.contains("p50_ns"), batches[i] == 1);
    if (batches[i] != 1) continue;
    EXPECT_LE(line["p50_ns"].get<double>(), line["p99_ns"].get<double>());
    EXPECT_LE(line["p99_ns"].get<double>(), line["p999_ns"].get<double>());
  }
}

TEST_F(Bench, DrawsRowsWhereNoneAreGiven) {
  ASSERT_EQ(forestvm({"compile", model_, "-o", file("m.fvm")}).code, 0);
  for (const std::string& model : {model_, file("m.fvm"), test_data("digits/model.ubj")}) {
    const auto page = lines({model, "--batch", "7"});
    ASSERT_EQ(page.size(), 1U);
    EXPECT_EQ(page[0]["rows"], "16384 rows drawn between the model's thresholds, seed 1");
  }
}

TEST_F(Bench, PrintsATable) {
  const Outcome outcome = bench({model_, rows_, "--batch", "1,64", "--schedule", "xgboost", "--target",
                                 "baseline", "--contract", "reproducible"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"model     ", "schedule  ", "rows.npy, repeated to the batch\n", "target baseline",
                           "us/row min", "\n       1        1 ", "\n      64        1 ", "subtracted\n"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
}

TEST_F(Bench, ComparesSchedulesSideBySide) {
  const std::vector<std::string> words = {
      model_,       rows_,    "--batch",    "1,8",
      "--schedule", "rows-4", "--schedule", "tile(batch, b0, b1, 8); parallel(b0)"};
  const Outcome outcome = bench(words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"schedule  1: tile(batch, b0, b1, 64); ", "schedule  2: tile(batch, b0, b1, 8); parallel(b0)\n",
        "schedule    batch", "\n       1        1        1 ", "\n       2        1        1 ",
        "\n       1        8        1 ", "\n       2        8        1 "})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << outcome.out;
  const auto page = lines(words);
  ASSERT_EQ(page.size(), 4U);
  EXPECT_NE(page[0]["schedule"], page[1]["schedule"]);
  EXPECT_EQ(page[0]["schedule"], page[2]["schedule"]);
  expect_refused({model_, "--schedule", "rows-4", "--schedule", "rows-x"}, 1, "schedule 'rows-x': unknown");
  expect_refused({model_, "--batch", "1", "--batch", "2"}, 2, "option '--batch' is given twice");
}

/// Parts of calls: measured ones for every program, predicted ones for models whose plan `auto` has chosen.
TEST_F(Bench, TimesThePartsOfCalls) {
  const std::vector<std::string> words = {model_, rows_, "--batch", "1,64", "--parts"};
  const Outcome table = bench(words);
  EXPECT_EQ(table.code, 0) << table.err;
  for (const char* part :
       {"us/row        encode       walk     reduce  transform        all\n",
        "\n       1        1  measured ", "\n      64        1  measured ", "  predicted "})
    EXPECT_NE(table.out.find(part), std::string::npos) << part << "\n" << table.out;
  for (const auto& line : lines(words)) {
    for (const char* kind : {"us_per_row", "predicted_us_per_row"}) {
      ASSERT_TRUE(line.contains(kind)) << line.dump();
      for (const char* part : {"encode", "walk", "reduce", "transform"})
        EXPECT_GE(line[kind][part].get<double>(), 0) << line.dump();
    }
    EXPECT_GT(line["predicted_us_per_row"]["walk"].get<double>(), 0) << line.dump();
    // The other measured parts are differences of times, which can be 0 on a busy machine.
    EXPECT_GT(line["us_per_row"]["reduce"].get<double>(), 0) << line.dump();
  }
}

/// Programs with outputs of trees, and some of several outputs, add or write leaves that their walks keep.
TEST_F(Bench, TimesThePartsOfProgramsThatKeepLeaves) {
  ASSERT_EQ(forestvm({"compile", model_, "-o", file("m.fvm"), "--with", "trees,staged"}).code, 0);
  const std::string classes = test_data("catboost/1.2.10_classes/");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{file("m.fvm"), rows_}, {classes + "model.cbm", classes + "rows.npy"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--batch", "1,64", "--parts"});
    for (const auto& line : lines(all)) EXPECT_TRUE(line.contains("us_per_row")) << line.dump();
  }
}

TEST_F(Bench, PredictsPartsOnlyWhereItCan) {
  const auto is_predicted = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--batch", "8", "--parts"});
    return lines(words)[0].contains("predicted_us_per_row");
  };
  EXPECT_TRUE(is_predicted({model_}));
  EXPECT_FALSE(is_predicted({model_, "--threads", "2"}));
  EXPECT_FALSE(is_predicted({model_, "--schedule", "rows-4"}));
  EXPECT_FALSE(is_predicted({model_, "--contract", "reproducible"}));
  ASSERT_EQ(forestvm({"compile", model_, "-o", file("m.fvm"), "--with", "contributions"}).code, 0);
  EXPECT_FALSE(is_predicted({file("m.fvm")}));
  expect_refused({model_, "--parts", "--backend", "emulator"}, 2,
                 "--parts: times the parts of calls on the host only");
}

TEST_F(Bench, TheEnvironmentNamesTheTargetWhereNobodyElseDoes) {
  const auto with = [&](const char* target, std::vector<std::string> words) {
    ::setenv("FORESTVM_TARGET", target, 1);
    const Outcome outcome = bench(std::move(words));
    ::unsetenv("FORESTVM_TARGET");
    return outcome;
  };
  const std::vector<std::string> words = {model_, rows_, "--batch", "1"};
  const Outcome forced = with("baseline", words);
  EXPECT_NE(forced.out.find("target baseline"), std::string::npos) << forced.out << forced.err;
  const Outcome unknown = with("z80", words);
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("FORESTVM_TARGET=z80: unknown; expected one of auto"), std::string::npos)
      << unknown.err;
  EXPECT_EQ(with("z80", {model_, rows_, "--batch", "1", "--target", "baseline"}).code, 0);
  EXPECT_EQ(with("", words).code, 0);
  EXPECT_EQ(with("auto", words).code, 0);
}

TEST_F(Bench, RefusesBadLists) {
  for (const char* list : {"0", "-1", "", "x", "1,", ",1", "1,,2", "1,0", "1;2", "1.5", "16777217"})
    expect_refused({model_, rows_, std::string("--batch=") + list}, 2, "--batch");
  expect_refused({model_, rows_, "--batch", "1,0"}, 2,
                 "bench: --batch '1,0': expected whole numbers from 1 to 16777216, separated by commas");
  for (const char* list : {"0", "-1", "two", "1,4097"})
    expect_refused({model_, rows_, std::string("--threads=") + list}, 2, "whole numbers from 1 to 4096");
}

TEST_F(Bench, RefusesTheRest) {
  for (const char* seconds : {"0", "-1", "x", "nan", "inf", "3601"}) {
    const Outcome outcome = forestvm({"bench", model_, rows_, std::string("--seconds=") + seconds});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find("expected a number above 0, at most 3600"), std::string::npos) << outcome.err;
  }
  expect_refused({}, 2, "argument MODEL is missing");
  expect_refused({file("absent")}, 3, "absent");
  expect_refused({model_, test_data("digits/rows.npy")}, 1, "has 64 columns, the model has 10 features");
  expect_refused({model_, write("none.csv", "age,sex,bmi,bp,s1,s2,s3,s4,s5,s6\n")}, 1, "has no rows");
  expect_refused({model_, "--target", "z80"}, 2, "z80");
  std::string wide = "1";
  for (int i = 0; i < 63; ++i) wide += ",1";
  expect_refused({test_data("digits/model.ubj"), write("wide.csv", wide + "\n"), "--batch", "16777216"}, 2,
                 "--batch '16777216': with 1 rows of 64 features it takes more than 4 GiB");
}

}  // namespace
}  // namespace forestvm::cli::test_program_bench
