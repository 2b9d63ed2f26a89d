// forestvm run through the real program: its output for every kind of input, and what it refuses.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli::test_program_run {
namespace {

/// Expects a failure: exactly one line on standard error and nothing on standard output.
void expect_failure(const Outcome& outcome, int code, const std::string& part) {
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("forestvm: ")) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
}

class Run : public ProgramTest {
 protected:
  const std::string model_ = test_data("breast_cancer/model.json");
  const std::string rows_ = test_data("breast_cancer/rows.npy");
  const std::string csv_ = test_data("breast_cancer/rows.csv");

  /// Returns the .npy file that `run` writes.
  std::string npy(std::vector<std::string> words) const {
    words.insert(words.begin(), "run");
    words.insert(words.end(), {"-o", file("out.npy")});
    const Outcome outcome = forestvm(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out + outcome.err, "");
    return content_of(file("out.npy"));
  }
};

TEST_F(Run, WritesTheTrainersRawScoresBitForBit) {
  for (const char* name : {"breast_cancer/", "diabetes/"})
    EXPECT_EQ(npy({test_data(std::string(name) + "model.json"), test_data(std::string(name) + "rows.npy"),
                   "--output", "raw"}),
              content_of(test_data(std::string(name) + "expected_raw.npy")))
        << name;
  EXPECT_EQ(npy({test_data("digits/model.ubj"), test_data("digits/rows.npy"), "--output=raw"}),
            content_of(test_data("digits/expected_raw.npy")));
}

TEST_F(Run, ReadsCsvAndNpyAlike) {
  for (const char* name : {"breast_cancer/", "diabetes/"}) {
    const std::string model = test_data(std::string(name) + "model.json");
    EXPECT_EQ(npy({model, test_data(std::string(name) + "rows.csv")}),
              npy({model, test_data(std::string(name) + "rows.npy")}));
  }
}

TEST_F(Run, DoesNotDependOnBatchesOrThreads) {
  const std::string all = npy({model_, rows_});
  for (const char* batch : {"1", "7", "64", "171", "1000000"})
    for (const char* threads : {"1", "2", "5"})
      EXPECT_EQ(npy({model_, rows_, "--batch", batch, "--threads", threads}), all) << batch << " " << threads;
}

TEST_F(Run, OnTheEmulatorOfAGpuAnswersAreTheSame) {
  for (const char* output : {"raw", "value", "class", "leaf"})
    EXPECT_EQ(npy({model_, rows_, "--output", output, "--backend", "emulator"}),
              npy({model_, rows_, "--output", output}));
  expect_failure(forestvm({"run", model_, rows_, "--backend", "emulator", "--threads", "2"}), 2,
                 "--threads is for the host: --backend emulator has none");
  expect_failure(forestvm({"run", model_, rows_, "--backend", "emulator", "--schedule", "rows"}), 1,
                 "it runs on the host, not on the emulator; compile the model with a schedule for GPUs");
}

/// Cells of CatBoost's categories are texts; its counters are columns that the program derives from them.
TEST_F(Run, HashesTheTextsOfCatBoostsCategories) {
  for (const std::string folder :
       {"1.2.10_counters", "1.2.10_labels", "1.2.10_means", "1.2.10_one_hot", "1.2_counters"}) {
    const std::string model = test_data("catboost/" + folder + "/model.cbm");
    const std::string rows = test_data("catboost/" + folder + "/rows.csv");
    const std::string expected = content_of(test_data("catboost/" + folder + "/expected_raw.npy"));
    for (const char* schedule : {"auto", "default", "xgboost", "encode(u8)"})
      EXPECT_EQ(npy({model, rows, "--output", "raw", "--schedule", schedule}), expected)
          << folder << " " << schedule;
    EXPECT_EQ(npy({model, rows, "--output", "raw", "--backend", "emulator"}), expected) << folder;
    EXPECT_EQ(npy({model, rows, "--output", "leaf", "--threads", "2", "--batch", "7"}),
              content_of(test_data("catboost/" + folder + "/expected_leaf.npy")))
        << folder;
    ASSERT_EQ(forestvm({"compile", model, "-o", file("m.fvm"), "--schedule", "encode(u8)"}).code, 0);
    ASSERT_EQ(forestvm({"encode", file("m.fvm"), rows, "-o", file("rows.fvr")}).code, 0);
    EXPECT_EQ(npy({file("m.fvm"), file("rows.fvr"), "--output", "raw"}), expected) << folder;
  }
}

TEST_F(Run, WritesCsvToStandardOutput) {
  const Outcome one = forestvm({"run", model_, rows_, "--output", "raw"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.err, "");
  EXPECT_EQ(std::count(one.out.begin(), one.out.end(), '\n'), 171);
  float first = 0;
  std::memcpy(&first, content_of(test_data("breast_cancer/expected_raw.npy")).data() + 128, sizeof first);
  EXPECT_EQ(std::stof(one.out), first);
  EXPECT_EQ(forestvm({"run", model_, rows_, "--output", "raw", "-o", "-"}).out, one.out);
  EXPECT_EQ(forestvm({"run", model_, rows_, "--output", "raw", "-o", file("o.csv")}).out, "");
  EXPECT_EQ(content_of(file("o.csv")), one.out);
  EXPECT_EQ(forestvm({"run", model_, "-", "--output", "raw"}, {.in = content_of(csv_)}).out, one.out);
  EXPECT_EQ(forestvm({"run", model_, "-", "--output", "raw"}, {.in = content_of(rows_)}).out, one.out);
}

TEST_F(Run, WritesClasses) {
  const std::string digits =
      npy({test_data("digits/model.ubj"), test_data("digits/rows.npy"), "--output", "class"});
  EXPECT_NE(digits.find("{'descr': '<i8', 'fortran_order': False, 'shape': (540,), }"), std::string::npos);
  const Outcome text =
      forestvm({"run", test_data("digits/model.ubj"), test_data("digits/rows.npy"), "--output", "class"});
  EXPECT_EQ(text.out.size(), 2U * 540U);
  expect_failure(forestvm({"run", test_data("diabetes/model.json"), test_data("diabetes/rows.npy"),
                           "--output", "class"}),
                 1, "diabetes/model.json: has no output class");
}

TEST_F(Run, MatchesColumnsByName) {
  const std::string model = test_data("diabetes/model.json");
  const std::string plain = write("plain.csv", "age,sex,bmi,bp,s1,s2,s3,s4,s5,s6\n11,2,3,4,5,6,7,8,9,10\n");
  const std::string moved = write("moved.csv", "s6,sex,bmi,bp,s1,s2,s3,s4,s5,age\n10,2,3,4,5,6,7,8,9,11\n");
  const std::string bare = write("bare.csv", "11,2,3,4,5,6,7,8,9,10\n");
  EXPECT_EQ(npy({model, moved}), npy({model, plain}));
  EXPECT_EQ(npy({model, bare}), npy({model, plain}));
  expect_failure(
      forestvm({"run", model, write("strange.csv", "AGE,sex,bmi,bp,s1,s2,s3,s4,s5,s6\n")}), 1,
      "strange.csv: header: lacks features of the model: 'age'; has columns that the model lacks: 'AGE'");
}

TEST_F(Run, NamesBothWidths) {
  expect_failure(forestvm({"run", model_, test_data("diabetes/rows.npy")}), 1,
                 "diabetes/rows.npy: has 10 columns, the model has 30 features");
  expect_failure(forestvm({"run", model_, "-"}, {.in = "1,2\n"}), 1,
                 "standard input: has 2 columns, the model has 30 features");
}

TEST_F(Run, TreatsTheMissingValueAsMissing) {
  const std::string model = test_data("diabetes/model.json");
  const std::string empty = write("empty.csv", ",2,,4,5,6,7,8,9,10\n");
  const std::string marked = write("marked.csv", "-999,2,-999,4,5,6,7,8,9,10\n");
  EXPECT_EQ(npy({model, marked, "--missing", "-999"}), npy({model, empty}));
  EXPECT_EQ(npy({model, marked, "--missing=-999.0"}), npy({model, empty}));
  EXPECT_EQ(npy({model, write("zero.csv", "-0,2,0.0,4,5,6,7,8,9,10\n"), "--missing", "0"}),
            npy({model, empty}));
  expect_failure(forestvm({"run", model, empty, "--missing", "none"}), 2, "--missing 'none'");
}

TEST_F(Run, AnswersNoRowsWithNoRows) {
  const std::string none = write("none.csv", "age,sex,bmi,bp,s1,s2,s3,s4,s5,s6\n");
  EXPECT_EQ(forestvm({"run", test_data("diabetes/model.json"), none}).out, "");
  EXPECT_NE(npy({test_data("diabetes/model.json"), none}).find("'shape': (0,)"), std::string::npos);
}

TEST_F(Run, RunsProgramsAsItRunsModels) {
  ASSERT_EQ(forestvm({"compile", model_, "-o", file("m.fvm")}).code, 0);
  EXPECT_EQ(npy({file("m.fvm"), rows_}), npy({model_, rows_}));
  EXPECT_EQ(npy({file("m.fvm"), csv_, "--contract", "trainer"}), npy({model_, rows_}));
  expect_failure(forestvm({"run", file("m.fvm"), rows_, "--schedule", "auto"}), 2, "--schedule: ");
  expect_failure(forestvm({"run", file("m.fvm"), rows_, "--contract", "fast"}), 2, "--contract: ");
  expect_failure(forestvm({"run", file("m.fvm"), test_data("diabetes/rows.npy")}), 1, "10 columns");
  expect_failure(forestvm({"run", file("m.fvm"), test_data("diabetes/rows.csv")}), 1,
                 "features of the model: 'mean radius'");
}

TEST_F(Run, ReadsModelsAndProgramsFromPipes) {
  ASSERT_EQ(forestvm({"compile", model_, "-o", file("m.fvm")}).code, 0);
  const std::string expected = forestvm({"run", model_, rows_}).out;
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  for (const std::string& content : {content_of(model_), content_of(file("m.fvm"))}) {
    std::thread writer([&] { std::ofstream(file("pipe"), std::ios::binary) << content; });
    EXPECT_EQ(forestvm({"run", file("pipe"), rows_}).out, expected);
    writer.join();
  }
}

TEST_F(Run, TakesSchedulesByNameAndFromFiles) {
  const std::string all = npy({model_, rows_, "--output", "raw"});
  const std::string schedule = write("s.txt", "tile(batch, b0, b1, 16)\nreorder(b0, tree, b1)\n");
  EXPECT_EQ(npy({model_, rows_, "--output", "raw", "--schedule", schedule}), all);
  EXPECT_EQ(npy({model_, rows_, "--output", "raw", "--schedule", "auto"}), all);
  expect_failure(
      forestvm({"run", model_, rows_, "--schedule", write("w.txt", "tile(batch, b0, b1, 16)\n  tyle(x)\n")}),
      1, "w.txt: line 2, column 3: ");
  expect_failure(forestvm({"run", model_, rows_, "--schedule", write("l.txt", "\nparallel(nowhere)\n")}), 1,
                 "l.txt: line 2, column 1");
  expect_failure(forestvm({"run", model_, rows_, "--schedule", "nosuch"}), 1, "--schedule: ");
  expect_failure(forestvm({"run", model_, rows_, "--schedule", file("absent.txt")}), 3,
                 "absent.txt: cannot open");
}

TEST_F(Run, RefusesBadFiles) {
  expect_failure(forestvm({"run", write("m.json", "{\"learner\": "), rows_}), 1, "m.json: ");
  expect_failure(forestvm({"run", write("m.fvm", "FORESTVM"), rows_}), 1, "m.fvm: ");
  expect_failure(forestvm({"run", model_, write("r.npy", content_of(rows_).substr(0, 1000))}), 1,
                 "r.npy: NPY data: ");
  expect_failure(forestvm({"run", model_, write("r.csv", "1,2\n1,x\n")}), 1, "r.csv: has 2 columns");
  std::string row;
  for (int i = 1; i < 30; ++i) row += "1,";
  expect_failure(forestvm({"run", model_, write("r.csv", row + "1\n" + row + "x\n")}), 1,
                 "r.csv: line 2, column 30: 'x'");
  expect_failure(forestvm({"run", model_, write("e.csv", "")}), 1, "e.csv: is empty");
  expect_failure(forestvm({"run", model_, write("new\nline.csv", "")}), 1, "new\\nline.csv: is empty");
}

TEST_F(Run, SaysWhatTheEnvironmentLacks) {
  expect_failure(forestvm({"run", file("absent.json"), rows_}), 3, "absent.json: cannot open: No such file");
  expect_failure(forestvm({"run", model_, file("absent.csv")}), 3, "absent.csv: cannot open: No such file");
  expect_failure(forestvm({"run", model_, file("")}), 3, "is a directory");
  expect_failure(forestvm({"run", model_, rows_, "-o", file("absent/out.csv")}), 3,
                 "out.csv: cannot write: No such file");
  expect_failure(forestvm({"run", model_, rows_, "-o", "/dev/full"}), 3,
                 "/dev/full: cannot write: No space left");
  expect_failure(forestvm({"run", model_, rows_}, {.out_path = "/dev/full"}), 3,
                 "standard output: cannot write: No space left");
  expect_failure(forestvm({"run", model_, rows_}, {.out_is_closed = true}), 3,
                 "standard output: cannot write");
  const Outcome unread = forestvm({"run", model_, rows_}, {.out_has_no_reader = true});
  EXPECT_EQ(unread.code, 128 + 13);  // SIGPIPE ends the program, without a message
  EXPECT_EQ(unread.err, "");
}

TEST_F(Run, LeavesNoHalfFile) {
  const std::string out = write("out.csv", "before");
  EXPECT_EQ(forestvm({"run", model_, write("r.csv", "x"), "-o", out}).code, 1);
  EXPECT_EQ(content_of(out), "before");
  EXPECT_EQ(forestvm({"run", model_, rows_, "-o", out}).code, 0);
  const auto files = std::filesystem::directory_iterator(std::filesystem::path(out).parent_path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 2);
}

TEST_F(Run, RefusesToOverwriteItsInput) {
  const std::string rows = write("rows.csv", content_of(csv_));
  expect_failure(forestvm({"run", model_, rows, "-o", rows}), 2, "would overwrite the input");
  EXPECT_EQ(content_of(rows), content_of(csv_));
}

TEST_F(Run, RefusesWrongUsage) {
  expect_failure(forestvm({"run"}), 2, "run: argument MODEL is missing (see forestvm run --help)");
  expect_failure(forestvm({"run", "", rows_}), 2, "run: argument MODEL is empty (see forestvm run --help)");
  expect_failure(forestvm({"run", model_}), 2, "argument ROWS is missing");
  expect_failure(forestvm({"run", model_, rows_, "more"}), 2, "too many arguments");
  expect_failure(forestvm({"run", model_, rows_, "--batch", "0"}), 2,
                 "--batch '0': expected a whole number from 1");
  expect_failure(forestvm({"run", model_, rows_, "--threads", "0"}), 2, "--threads '0'");
  expect_failure(forestvm({"run", model_, rows_, "--output", "prob"}), 2,
                 "expected one of raw, value, class");
  expect_failure(forestvm({"run", model_, rows_, "--backend", "gpu"}), 2,
                 "expected one of auto, host, emulator, cuda, hip");
  expect_failure(forestvm({"run", model_, rows_, "--contract", "none"}), 2,
                 "expected one of trainer, reproducible, fast");
  const Outcome target = forestvm({"run", model_, rows_, "--target", "z80"});
  EXPECT_TRUE(target.code == 1 || target.code == 2) << target.code;
  EXPECT_EQ(forestvm({"run", model_, rows_, "--target", "baseline"}).code, 0);
}

}  // namespace
}  // namespace forestvm::cli::test_program_run
