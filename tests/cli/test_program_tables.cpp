// Tables through the real program: the options that say how rows are read, what stands beside predictions, and a
// program at the other end of a pipe.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "spawn.hpp"
#include "vm/small_program.hpp"

namespace forestvm::cli::test_program_tables {
namespace {

namespace fs = std::filesystem;

class Tables : public ProgramTest {
 protected:
  void SetUp() override { write("m.txt", small_lightgbm("a b c")); }

  const std::string model_ = file("m.txt");

  /// Returns what `run` prints for these rows.
  std::string answers(const std::string& rows, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"run", model_, "-"});
    const Outcome outcome = forestvm(options, {.in = rows});
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(outcome.code, 0);
    return outcome.out;
  }

  /// Returns the one line that `run` prints on standard error when it fails.
  std::string refusal(const std::string& rows, std::vector<std::string> options, int code) const {
    options.insert(options.begin(), {"run", model_, "-"});
    const Outcome outcome = forestvm(options, {.in = rows});
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }
};

TEST_F(Tables, AreReadAsTheOptionsSay) {
  EXPECT_EQ(answers("c;b;a\n5;6;0\n5;6;1\n"), "1\n2\n");
  EXPECT_EQ(answers("a b c\n0 1 2\nTrue 1 2\n"), "1\n2\n");
  for (const auto& [name, mark] :
       {std::pair{"|", "|"}, {"tab", "\t"}, {"blank", "  "}, {"comma", ","}, {"semicolon", ";"}})
    EXPECT_EQ(answers(std::string("1") + mark + "1" + mark + "2\n", {"--separator", name, "--header", "no"}),
              "2\n")
        << name;
  EXPECT_EQ(answers("a,b,c\nnone,NA,1\n", {"--na", "none,NA"}), answers("a,b,c\n,,1\n"));
  EXPECT_EQ(answers("id,a,b,c\nx,1,2,3\n", {"--extra-columns", "ignore"}), "2\n");
  EXPECT_EQ(answers("1 1:1\n", {"--index-base", "1"}), "2\n");
  EXPECT_EQ(answers("1\n", {"--format", "libsvm", "--index-base", "0"}),
            "1\n");  // 0 is absent in LightGBM's files
  EXPECT_EQ(answers("{\"b\": 1, \"a\": 2, \"c\": 3}\n[0, 1, 2]\n"), "2\n1\n");
}

TEST_F(Tables, RefuseOptionsThatMakeNoSense) {
  EXPECT_NE(refusal("1,2,3\n", {"--separator", "xx"}, 2)
                .find("--separator 'xx': expected one of comma, semicolon, tab, blank, or a character"),
            std::string::npos);
  for (const char* mark : {".", "-", "\"", "5", "e"})
    EXPECT_NE(refusal("1,2,3\n", {"--separator", mark}, 2).find("--separator "), std::string::npos);
  EXPECT_NE(refusal("1,2,3\n", {"--na", "NA,-999"}, 2).find("'-999' is a number: use --missing"),
            std::string::npos);
  EXPECT_NE(refusal("1,2,3\n", {"--extra-columns", "drop"}, 2).find("expected one of error, ignore"),
            std::string::npos);
  EXPECT_NE(refusal("1,2,3\n", {"--format", "parquet"}, 2)
                .find("expected one of auto, csv, npy, npz, libsvm, jsonl"),
            std::string::npos);
  EXPECT_NE(refusal("1,2,3\n", {"--index-base", "2"}, 2).find("--index-base '2'"), std::string::npos);
  EXPECT_EQ(refusal("1,2,3\n", {"--array", "x"}, 2).substr(0, 57),
            "forestvm: run: standard input: is CSV: --array is for NPZ");
  EXPECT_NE(refusal("1,5;2;3,5\n", {}, 1).find("line 1: the separator cannot be told"), std::string::npos);
}

TEST_F(Tables, AllCommandsReadThem) {
  const std::string rows = write("rows.txt", "id;c;b;a\nx;5;NA;0\ny;5;6;1\n");
  const std::vector<std::string> options = {"--separator", "semicolon", "--extra-columns",
                                            "ignore",      "--na",      "NA"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), options.begin(), options.end());
    return forestvm(words);
  };
  EXPECT_EQ(with({"diff", model_, rows}).code, 0);
  EXPECT_EQ(with({"bench", model_, rows, "--batch", "1", "--seconds", "0.001"}).code, 0);
  ASSERT_EQ(with({"encode", model_, rows, "-o", file("rows.fvr")}).code, 0);
  EXPECT_EQ(forestvm({"run", model_, file("rows.fvr")}).out, "1\n2\n");
  for (const char* command : {"run", "bench"}) {
    const Outcome outcome = forestvm({command, model_, file("rows.fvr"), "--na", "NA"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("--na: "), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("holds encoded rows"), std::string::npos) << outcome.err;
  }
}

TEST_F(Tables, KeepAColumnBesideThePredictions) {
  const std::string rows = "id,a,b,c\n\"x,1\",0,,\n,1,,\n";
  EXPECT_EQ(answers(rows, {"--keep", "id"}), "\"x,1\",1\n\"\",2\n");
  EXPECT_EQ(answers(rows, {"--keep", "id", "--output-header"}), "id,value\n\"x,1\",1\n\"\",2\n");
  EXPECT_EQ(answers(rows, {"--keep", "id", "--batch", "1", "--output", "leaf"}), "\"x,1\",0\n\"\",1\n");
  EXPECT_NE(refusal(rows, {"--keep", "id", "-o", file("out.npy")}, 2)
                .find("--keep: an NPY array has no room for texts"),
            std::string::npos);
  EXPECT_NE(refusal(rows, {"--keep", "name"}, 1).find("header: has no column 'name' to keep"),
            std::string::npos);
  EXPECT_NE(refusal(rows, {}, 1)
                .find("has columns that the model lacks: 'id'; --extra-columns ignore leaves them out"),
            std::string::npos);
}

TEST_F(Tables, NameTheOutputsIfAsked) {
  const std::string rows = "a,b,c\n0,1,2\n";
  EXPECT_EQ(answers(rows, {"--output-header"}), "value\n1\n");
  EXPECT_EQ(answers(rows, {"--output-header", "--output", "raw"}), "raw\n1\n");
  EXPECT_EQ(answers(rows, {"--output-header", "--output", "leaf"}), "tree_0\n0\n");
  EXPECT_EQ(answers("a,b,c\n", {"--output-header"}), "value\n");
  const std::vector<std::string> digits = {"run", test_data("digits/model.ubj"), test_data("digits/rows.npy"),
                                           "--output-header"};
  EXPECT_TRUE(forestvm(digits).out.starts_with("value_0,value_1,value_2,value_3,"))
      << forestvm(digits).out.substr(0, 90);
  EXPECT_NE(
      refusal(rows, {"--output-header", "-o", file("out.npy")}, 2).find("--output-header: an NPY array"),
      std::string::npos);
}

TEST_F(Tables, NameTheOutputsByTheClasses) {
  const Program program = test::compiled(test::small_forest(), "encode(u8)");
  ASSERT_TRUE(program.save(file("m.fvm")).ok());
  const auto header = [&](const char* output) {
    const Outcome outcome =
        forestvm({"run", file("m.fvm"), "-", "--output-header", "--output", output}, {.in = "f0,f1,f2\n"});
    return outcome.out + outcome.err;
  };
  EXPECT_EQ(header("value"), "class 0,class 1,class 2\n");
  EXPECT_EQ(header("raw"), "class 0,class 1,class 2\n");
  EXPECT_EQ(header("class"), "class\n");
  EXPECT_EQ(header("leaf"), "tree_0,tree_1,tree_2,tree_3,tree_4,tree_5\n");
}

/// XGBoost takes what a sparse row does not list as missing.
TEST_F(Tables, SparseRowsLackWhatTheTrainerSays) {
  const std::string model = test_data("diabetes/model.json");
  const auto answer = [&](const std::string& rows) {
    return forestvm({"run", model, "-"}, {.in = rows}).out;
  };
  EXPECT_EQ(answer("7 0:59 2:32.1\n"), answer("59,,32.1,,,,,,,\n"));
  EXPECT_NE(answer("7 0:59 2:32.1\n"), answer("59,0,32.1,0,0,0,0,0,0,0\n"));
}

/// Links stay links, also one to a file that does not exist yet.
TEST_F(Tables, PredictionsGoToTheFileThatALinkNames) {
  fs::create_directory(file("folder"));
  fs::create_symlink("folder/second", file("first"));
  fs::create_symlink("real.csv", file("folder/second"));
  for (const char* expected : {"1\n", "2\n"}) {
    EXPECT_EQ(
        answers(std::string("a,b,c\n") + (*expected == '1' ? "0" : "1") + ",1,2\n", {"-o", file("first")}),
        "");
    EXPECT_TRUE(fs::is_symlink(file("first")) && fs::is_symlink(file("folder/second")));
    EXPECT_EQ(content_of(file("folder/real.csv")), expected);
  }
  fs::create_symlink("loop", file("loop"));
  EXPECT_EQ(forestvm({"run", model_, "-", "-o", file("loop")}, {.in = "1,2,3\n"}).code, 3);
}

/// A program that writes a row and waits for its answer before it writes the next.
class CoProcess : public Tables {
 protected:
  /// Writes rows one by one and returns the answers, each read before the next row is written.
  std::vector<std::string> conversation(const std::vector<std::string>& rows,
                                        const std::string& begin = "") const {
    const std::string in = file("in"), out = file("out");
    EXPECT_EQ(::mkfifo(in.c_str(), 0600) + ::mkfifo(out.c_str(), 0600), 0);
    const int answers = ::open(out.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ::fcntl(answers, F_SETFL, 0);  // reading waits, only opening did not
    std::vector<std::string> all;
    const auto talk = [&](pid_t) {
      const int to = ::open(in.c_str(), O_WRONLY | O_CLOEXEC);
      EXPECT_EQ(::write(to, begin.data(), begin.size()), static_cast<ssize_t>(begin.size()));
      for (const std::string& row : rows) {
        EXPECT_EQ(::write(to, row.data(), row.size()), static_cast<ssize_t>(row.size()));
        std::array<char, 100> piece{};
        const ssize_t got = ::read(answers, piece.data(), piece.size());
        all.emplace_back(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      }
      ::close(to);
    };
    const Outcome outcome =
        forestvm({"run", model_, in, "--batch", "1"}, {.out_path = out, .meanwhile = talk});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    ::close(answers);
    fs::remove(in);
    fs::remove(out);
    return all;
  }
};

TEST_F(CoProcess, GetsEachAnswerAsSoonAsItIsThere) {
  const std::vector<std::string> expected = {"1\n", "2\n", "1\n"};
  EXPECT_EQ(conversation({"0,1,2\n", "1,1,2\n", "0,1,2\n"}, "a,b,c\n"), expected);
  EXPECT_EQ(conversation({"0,1,5\n", "1,1,2\n", "0,1,2\n"}),
            expected);  // fewer bytes than a magic number has
  EXPECT_EQ(conversation({"0 1 5\n", "1 1 2\n", "0 1 2\n"}), expected);
  EXPECT_EQ(conversation({"[0,1,2]\n", "[1,1,2]\n", "[0,1,2]\n"}), expected);
  EXPECT_EQ(conversation({"1 0:0\n", "1 0:1\n", "1 1:7\n"}), expected);
}

}  // namespace
}  // namespace forestvm::cli::test_program_tables
