// forestvm encode through the real program, and its files in run and bench.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli::test_program_encode {
namespace {

class Encode : public ProgramTest {
 protected:
  void SetUp() override { must({"compile", model_, "-o", program_}); }

  std::string must(const std::vector<std::string>& words, const Streams& streams = {}) const {
    const Outcome outcome = forestvm(words, streams);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }

  void expect_failure(const std::vector<std::string>& words, int code, const std::string& part,
                      const Streams& streams = {}) const {
    const Outcome outcome = forestvm(words, streams);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }

  std::string encoded(const std::string& model, const std::string& rows,
                      const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"encode", model, rows, "-o", file("rows.fvr")};
    words.insert(words.end(), more.begin(), more.end());
    must(words);
    return file("rows.fvr");
  }

  const std::string model_ = test_data("breast_cancer/model.json");
  const std::string rows_ = test_data("breast_cancer/rows.npy");
  const std::string program_ = file("model.fvm");
};

TEST_F(Encode, RunPredictsTheSame) {
  for (const std::string name : {"breast_cancer/", "digits/", "lightgbm/4.7.0_classes/"}) {
    const std::string model = test_data(name + (name == "breast_cancer/" ? "model.json"
                                                : name == "digits/"      ? "model.ubj"
                                                                         : "model.txt"));
    const std::string rows = test_data(name + "rows.npy");
    const std::string program = file("this.fvm");
    must({"compile", model, "-o", program});
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{}, {"--batch", "1"}, {"--batch", "100", "--threads", "1"}}) {
      const std::string coded = encoded(program, rows, more);
      for (const char* output : {"raw", "value", "class", "leaf"}) {
        const std::string expected = must({"run", model, rows, "--output", output});
        EXPECT_EQ(must({"run", program, coded, "--output", output}), expected) << name << output;
        EXPECT_EQ(must({"run", model, coded, "--output", output, "--threads", "2"}), expected);
      }
    }
  }
}

/// Files of encoded rows that were committed are read by every later build. They are never rewritten: a new format gets
/// a file of its own.
TEST_F(Encode, CommittedFilesAreRead) {
  const std::string program = test_data("programs/format_8/tables.fvm");
  const std::string expected =
      must({"run", program, test_data("encoded/rows.csv"), "--header", "no", "--output", "raw"});
  EXPECT_EQ(must({"run", program, test_data("encoded/format_1.fvr"), "--output", "raw"}), expected);
}

TEST_F(Encode, ProgramsForGpusTakeThem) {
  const std::string schedule = file("gpu.schedule"), mapped = file("gpu.fvm");
  std::ofstream(schedule) << "tile(batch, b0, b1, 32); reorder(b0, b1, tree); gpuDimension(b0, grid.x); "
                             "gpuDimension(b1, block.x); encode(u8); layout(tree, sparse)";
  must({"compile", model_, "--schedule", schedule, "-o", mapped});
  const std::string coded = encoded(program_, rows_);
  for (const char* output : {"raw", "value", "class", "leaf"})
    EXPECT_EQ(must({"run", mapped, coded, "--backend", "emulator", "--output", output}),
              must({"run", model_, rows_, "--output", output}));
  expect_failure(
      {"run", test_data("diabetes/model.json"), coded, "--backend", "emulator", "--schedule", schedule}, 1,
      "the rows are encoded for another program: its encoder is ");
  expect_failure({"encode", mapped, rows_, "-o", file("x.fvr")}, 1,
                 "compile the model with a schedule for the host");
}

TEST_F(Encode, GoesThroughPipes) {
  const std::string expected = must({"run", model_, rows_});
  const std::string bytes = must({"encode", model_, "-", "-o", "-"}, {.in = content_of(rows_)});
  EXPECT_EQ(bytes, content_of(encoded(program_, rows_)));
  EXPECT_EQ(must({"run", program_, "-"}, {.in = bytes}), expected);
}

TEST_F(Encode, MissingValuesAreThoseOfEncode) {
  const std::string rows = test_data("diabetes/rows.npy"), model = test_data("diabetes/model.json");
  const std::string expected = must({"run", model, rows, "--missing", "0"});
  const std::string coded = encoded(model, rows, {"--missing", "0"});
  EXPECT_EQ(must({"run", model, coded}), expected);
  expect_failure({"run", model, coded, "--missing", "0"}, 2,
                 "holds encoded rows: give it to forestvm encode");
  expect_failure({"run", model, coded, "--batch", "3"}, 2, "--batch: ");
}

TEST_F(Encode, OtherEncodersRowsAreRefused) {
  const std::string coded = encoded(program_, rows_);
  expect_failure({"run", test_data("diabetes/model.json"), coded}, 1,
                 "the rows are encoded for another program: its encoder is ");
  expect_failure({"run", model_, coded, "--schedule", "xgboost"}, 1, "the program has no encoder: compile ");
  expect_failure({"encode", model_, rows_, "-o", file("x.fvr"), "--schedule", "xgboost"}, 1,
                 "the program has no encoder: compile ");
  expect_failure({"encode", model_, coded, "-o", file("x.fvr")}, 1, "rows.fvr: holds encoded rows already");
  expect_failure({"diff", model_, coded, "--against", "reference"}, 1, "holds encoded rows");
  expect_failure({"bench", test_data("diabetes/model.json"), coded}, 1, "encoded for another program");
}

TEST_F(Encode, DamagedFilesLeaveNoOutput) {
  const std::string coded = encoded(program_, rows_);
  const std::string bytes = content_of(coded);
  write("short.fvr", bytes.substr(0, 300));
  expect_failure({"run", program_, file("short.fvr"), "-o", file("out.npy")}, 1,
                 "short.fvr: byte 300: the file ends in the codes of a batch: it is truncated");
  expect_failure({"run", program_, "-"}, 1, "standard input: byte 300: ", {.in = bytes.substr(0, 300)});
  expect_failure({"bench", program_, file("short.fvr")}, 1, "short.fvr: byte 300: ");
  EXPECT_EQ(content_of(file("out.npy")), "");
}

TEST_F(Encode, SaysWhatIsMissing) {
  expect_failure({"encode", model_, rows_}, 2, "-o OUT.fvr is missing");
  expect_failure({"encode", model_}, 2, "ROWS");
  expect_failure({"encode", model_, rows_, "-o", "x", "--missing", "y"}, 2, "expected a number");
  expect_failure({"encode", program_, rows_, "-o", program_}, 2, "would overwrite the input");
}

TEST_F(Encode, BenchTimesEncodedRows) {
  const std::string coded = encoded(program_, rows_);
  const std::string page =
      must({"bench", program_, coded, "--seconds", "0.01", "--batch", "1,64,100,1000", "--threads", "1,2"});
  EXPECT_NE(page.find("128 encoded rows of "), std::string::npos) << page;
}

}  // namespace
}  // namespace forestvm::cli::test_program_encode
