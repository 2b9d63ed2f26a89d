// Files of the real program: standard input in place of any of them, headers, names of outputs, and what is
// left on disk after a signal or an error of the disk.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli::test_program_files {
namespace {

class Files : public ProgramTest {
 protected:
  const std::string model_ = test_data("diabetes/model.json");
  const std::string rows_ = test_data("diabetes/rows.csv");

  std::string compiled() const {
    EXPECT_EQ(forestvm({"compile", model_, "-o", file("m.fvm")}).code, 0);
    return file("m.fvm");
  }

  /// Returns the number of files in the test's folder, without the ones for standard streams.
  std::size_t files() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(file("")))
      count += entry.path().filename().string().starts_with("std") ? 0u : 1u;
    return count;
  }
};

TEST_F(Files, ADirectoryIsAModelOfYdf) {
  const std::string model = test_data("ydf/0.16.1_isolation/model"),
                    rows = test_data("ydf/0.16.1_isolation/rows.csv");
  const Outcome outcome = forestvm({"run", model, rows});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(forestvm({"compile", model + "/", "-o", file("m.fvm")}).err, "");
  EXPECT_EQ(forestvm({"run", file("m.fvm"), rows}).out, outcome.out);
  std::filesystem::create_directory(file("empty"));
  const Outcome refused = forestvm({"run", file("empty"), rows});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(
      refused.err,
      "forestvm: " + file("empty") +
          ": directory: has no file data_spec.pb, so it is not a YDF model; other models are single files\n");
}

/// A file as standard input, as in `< model.json`, has a size but no name to open it by.
TEST_F(Files, ModelsAndProgramsAreReadFromStandardInput) {
  const std::string expected = forestvm({"run", model_, rows_}).out;
  const std::string program = content_of(compiled());
  for (const std::string& model : {content_of(model_), program}) {
    const Outcome outcome = forestvm({"run", "-", rows_}, {.in = model});
    EXPECT_EQ(outcome.out, expected);
    EXPECT_EQ(outcome.err, "");
  }
  EXPECT_EQ(forestvm({"compile", "-", "-o", file("other.fvm")}, {.in = content_of(model_)}).err, "");
  EXPECT_EQ(content_of(file("other.fvm")), program);
  EXPECT_EQ(forestvm({"inspect", "-"}, {.in = program}).code, 0);
}

TEST_F(Files, ProgramsAreVerifiedFromStandardInput) {
  std::string program = content_of(compiled());
  const Outcome verified = forestvm({"verify", "-"}, {.in = program});
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_TRUE(verified.out.starts_with("standard input: verified: ")) << verified.out;
  program[program.size() / 2] = static_cast<char>(program[program.size() / 2] ^ 1);
  const Outcome damaged = forestvm({"verify", "-"}, {.in = program});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_TRUE(damaged.err.starts_with("forestvm: standard input: ")) << damaged.err;
  EXPECT_EQ(
      forestvm({"verify", "-"}, {.in = content_of(model_)}).err,
      "forestvm: standard input: header: not a program file; forestvm compile makes one from a model\n");
  EXPECT_EQ(forestvm({"verify", "-"}).code, 1);
}

TEST_F(Files, OnlyOneOfThemIsStandardInput) {
  for (const char* command : {"run", "encode", "diff", "bench"}) {
    const Outcome outcome = forestvm({command, "-", "-", "-o", file("x")});
    EXPECT_EQ(outcome.code, 2);
    if (std::string(command) == "run" || std::string(command) == "encode") {
      EXPECT_NE(outcome.err.find("MODEL and ROWS cannot both be standard input"), std::string::npos)
          << outcome.err;
    }
  }
  EXPECT_NE(forestvm({"diff", "-", "-"}).err.find("cannot both be standard input"), std::string::npos);
  EXPECT_NE(forestvm({"bench", "-", "-"}).err.find("cannot both be standard input"), std::string::npos);
}

/// A file that is no model is refused without reading all of a device or a huge file.
TEST_F(Files, WhatIsNoModelIsRefusedByItsFirstBytes) {
  const std::string huge = write("huge", "\x7e\x7f nothing known");
  std::filesystem::resize_file(huge, std::uintmax_t{1} << 40);
  for (const std::string& path : {std::string("/dev/zero"), huge}) {
    const Outcome outcome = forestvm({"run", path, rows_});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.err.find(": byte 0: not a model file of a known format"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(forestvm({"run", model_, path}).code, 1);
  }
}

TEST_F(Files, HeadersThatCannotBeUsedAreSpokenOf) {
  const std::string nameless = write("nameless.txt", small_lightgbm("Column_0 Column_1 Column_2"));
  const std::string names = "age,sex,bmi", defaults = "f2,f1,f0", numbers = "0,1,2", row = "0,1,2";
  const std::string plain = forestvm({"run", nameless, "-", "--header", "no"}, {.in = row + "\n"}).out;
  const Outcome named = forestvm({"run", nameless, "-"}, {.in = names + "\n" + row + "\n"});
  EXPECT_EQ(named.out, plain);
  EXPECT_EQ(named.err,
            "forestvm: standard input: line 1 is skipped as a header: the model has no feature names, so its "
            "columns are taken in order\n");
  const Outcome moved = forestvm({"run", nameless, "-"}, {.in = defaults + "\n" + row + "\n"});
  EXPECT_EQ(moved.err, "");
  EXPECT_NE(moved.out, plain);
  const Outcome unclear = forestvm({"run", nameless, "-"}, {.in = numbers + "\n" + row + "\n"});
  EXPECT_EQ(unclear.code, 1);
  EXPECT_EQ(unclear.out, "");
  EXPECT_NE(unclear.err.find("say which with --header yes or --header no"), std::string::npos) << unclear.err;
  EXPECT_EQ(forestvm({"run", nameless, "-", "--header", "yes"}, {.in = numbers + "\n" + row + "\n"}).out,
            plain);
  const Outcome text = forestvm({"run", nameless, "-", "--header=no"}, {.in = names + "\n"});
  EXPECT_EQ(text.code, 1);
  EXPECT_NE(text.err.find("line 1, column 1: 'age' is not a number"), std::string::npos) << text.err;
}

TEST_F(Files, HeadersAreAskedForOfCsvAlone) {
  const std::string program = compiled();
  EXPECT_EQ(forestvm({"encode", program, rows_, "-o", file("rows.fvr"), "--header", "yes"}).code, 0);
  for (const auto& [rows, part] :
       {std::pair{test_data("diabetes/rows.npy"), "is an NPY array: --header is for CSV"},
        {file("rows.fvr"), "holds encoded rows"}}) {
    const Outcome outcome = forestvm({"run", program, rows, "--header", "no"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(forestvm({"run", program, rows, "--header", "auto"}).code, 0);
  }
  for (const char* command : {"diff", "bench"})
    EXPECT_EQ(forestvm({command, model_, test_data("diabetes/rows.npy"), "--header", "yes"}).code, 2);
  EXPECT_EQ(forestvm({"run", program, rows_, "--header", "maybe"}).code, 2);
}

/// LightGBM takes `x <= 0.1` in float64. The next float64 number is 0.1 in float32, and 0.1 in float32 is above 0.1.
TEST_F(Files, LightgbmComparesFloat64) {
  const std::string model = write("m.txt", small_lightgbm("a b c"));
  const std::string rows = "a,b,c\n0.1,0.3,2\n0.10000000000000002,1,2\n0.10000000149011612,1,2\n0.0625,1,2\n";
  EXPECT_EQ(forestvm({"run", model, "-"}, {.in = rows}).out, "1\n2\n2\n1\n");
  const std::string program = file("m.fvm");
  ASSERT_EQ(forestvm({"compile", model, "-o", program}).code, 0);
  EXPECT_EQ(forestvm({"run", program, "-"}, {.in = rows}).out, "1\n2\n2\n1\n");
  const Outcome diff = forestvm({"diff", model, write("rows.csv", rows)});
  EXPECT_EQ(diff.code, 0) << diff.out << diff.err;
}

TEST_F(Files, OutputsAreWrittenAsTheirNamesSay) {
  const Outcome unknown = forestvm({"run", model_, rows_, "-o", file("p.txt")});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find(": predictions are written as .csv or .npy, not as .txt"), std::string::npos)
      << unknown.err;
  EXPECT_EQ(files(), 0u);
  const std::string expected = forestvm({"run", model_, rows_}).out;
  EXPECT_EQ(forestvm({"run", model_, rows_, "-o=" + file("p.csv")}).code, 0);
  EXPECT_EQ(content_of(file("p.csv")), expected);
  EXPECT_EQ(forestvm({"run", model_, rows_, "-o" + file("predictions")}).code, 0);
  EXPECT_EQ(content_of(file("predictions")), expected);
  EXPECT_EQ(forestvm({"run", model_, rows_, "-o=-"}).out, expected);
}

TEST_F(Files, ModelsAreNotOverwrittenByTheirPredictions) {
  const std::string model = write("model.csv", content_of(model_));
  const Outcome outcome = forestvm({"run", model, rows_, "-o", model});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("would overwrite the input"), std::string::npos) << outcome.err;
  EXPECT_EQ(content_of(model), content_of(model_));
}

/// A test with an endless input: the program has begun its output when `meanwhile` is called.
class Interrupted : public Files {
 protected:
  void SetUp() override { ASSERT_EQ(::mkfifo(file("rows").c_str(), 0600), 0); }

  /// Runs the program and calls `meanwhile` when it has predicted one row and waits for the next.
  Outcome interrupted(const std::function<void(pid_t)>& meanwhile) const {
    write("out.csv", "before");
    const auto feed = [&](pid_t program) {
      const int rows = ::open(file("rows").c_str(), O_WRONLY | O_CLOEXEC);
      const std::string row = "1,2,3,4,5,6,7,8,9,10\n";
      EXPECT_EQ(::write(rows, row.data(), row.size()), static_cast<ssize_t>(row.size()));
      while (files() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      meanwhile(program);
      ::close(rows);
    };
    return forestvm({"run", model_, file("rows"), "--batch", "1", "-o", file("out.csv")},
                    {.meanwhile = feed});
  }
};

TEST_F(Interrupted, BySignalsTheProgramLeavesNothingBehind) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGXCPU, SIGXFSZ}) {
    const Outcome outcome = interrupted([signal](pid_t program) {
      ::kill(program, signal);
      siginfo_t info{};
      ::waitid(P_PID, static_cast<id_t>(program), &info, WEXITED | WNOWAIT);
    });
    EXPECT_EQ(outcome.code, 128 + signal);
    EXPECT_EQ(content_of(file("out.csv")), "before");
    EXPECT_EQ(files(), 2u) << signal;
  }
}

/// nohup asks for SIGHUP to be ignored.
TEST_F(Interrupted, ByASignalThatIsIgnoredItGoesOn) {
  const auto before = ::signal(SIGHUP, SIG_IGN);
  const Outcome outcome = interrupted([](pid_t program) { ::kill(program, SIGHUP); });
  ::signal(SIGHUP, before);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(content_of(file("out.csv")), "before");
  EXPECT_EQ(files(), 2u);
}

/// A result gets its name once it is on disk, and none if writing to the disk fails.
TEST_F(Files, ResultsThatTheDiskDoesNotTakeGetNoName) {
  const std::string out = write("out.npy", "before");
  for (const char* call : {"fsync", "close"}) {
    const Streams streams{.environment = {"LD_PRELOAD=" FORESTVM_FAILING_CALLS,
                                          "FAILING_CALL=" + std::string(call),
                                          "ASAN_OPTIONS=verify_asan_link_order=0"}};
    const Outcome outcome = forestvm({"run", model_, rows_, "-o", out}, streams);
    EXPECT_EQ(outcome.code, 3) << call;
    EXPECT_NE(outcome.err.find("out.npy: cannot write: Input/output error"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(content_of(out), "before") << call;
    EXPECT_EQ(files(), 1u) << call;
  }
}

}  // namespace
}  // namespace forestvm::cli::test_program_files
