// The program when memory or threads run out, at one allocation or from one on, at its start or in any
// command. Either it reports the failure and ends with exit code 3, or it does its work.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli::test_out_of_memory {
namespace {

/// The first kAll allocations all fail in turn, later ones in kSamples samples.
constexpr std::uint64_t kAll = 40, kSamples = 40;

class OutOfMemory : public ProgramTest {
 protected:
  OutOfMemory() {
    EXPECT_EQ(forestvm({"compile", model_, "-o", program_}).code, 0);
    write("model.txt", forestvm({"dump", program_}).out);
  }
  ~OutOfMemory() override { set_failing(""); }

  /// A command. Its output may be a file.
  struct Command {
    std::vector<std::string> words;
    /// True if the output is always the same. The output of `devices` is not, because it also says why it finds none.
    bool repeats = true;
  };

  Outcome failing(const Command& command, const std::string& how) const {
    set_failing(how);
    Outcome outcome = forestvm(command.words);
    set_failing("");
    return outcome;
  }

  std::uint64_t allocations_of(const Command& command) const {
    const std::string path = file("count");
    EXPECT_EQ(failing(command, "count " + path).err, forestvm(command.words).err);
    const std::uint64_t count = std::stoull(content_of(path));
    std::filesystem::remove(path);
    return count;
  }

  void expect_clean_failure(const Command& command, const std::string& how, const Outcome& expected,
                            const std::string& result) const {
    SCOPED_TRACE(how);
    std::filesystem::remove(out_);
    const Outcome outcome = failing(command, how);
    if (outcome.code == expected.code && outcome.err == expected.err) {
      EXPECT_TRUE(outcome.out == expected.out || !command.repeats);
      EXPECT_EQ(content_of(out_), result);
      return;
    }
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("forestvm: ") && outcome.err.ends_with("\n")) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    const bool says_why = outcome.err.find("memory") != std::string::npos ||
                          outcome.err.find("cannot start") != std::string::npos;
    EXPECT_TRUE(says_why) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(out_));
  }

  void expect_clean_failures(const Command& command) const {
    std::string line;
    for (const std::string& word : command.words) line += word + ' ';
    SCOPED_TRACE(line);
    std::filesystem::remove(out_);
    const Outcome expected = forestvm(command.words);
    const std::string result = content_of(out_);
    const std::uint64_t count = allocations_of(command);
    for (std::uint64_t after = 0; after < count; after += after < kAll ? 1 : 1 + count / kSamples)
      for (const char* const how : {"memory once ", "memory lasting "})
        expect_clean_failure(command, how + std::to_string(after), expected, result);
  }

  const std::string model_ = test_data("diabetes/model.json"), rows_ = test_data("diabetes/rows.csv");
  const std::string program_ = file("model.fvm"), text_ = file("model.txt"), out_ = file("out");

 private:
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the test has one thread
  static void set_failing(const std::string& how) { ::setenv("FORESTVM_FAILING", how.c_str(), 1); }
};

TEST_F(OutOfMemory, WhereNothingIsAsked) {
  for (const char* const word : {"--version", "--help", "no_command"}) expect_clean_failures({{word}});
  expect_clean_failures({{"run", "--help"}});
  expect_clean_failures({{"run", model_, rows_, "--threads", "none"}});
}

TEST_F(OutOfMemory, Inspect) {
  expect_clean_failures({{"inspect", model_}});
  expect_clean_failures({{"inspect", model_, "--json"}});
  expect_clean_failures({{"inspect", model_, "--backend", "cuda"}});
  expect_clean_failures({{"inspect", program_}});
}

/// Each allocation of the second half, in which the model is compiled and described, fails once.
TEST_F(OutOfMemory, InspectToTheEnd) {
  const Command inspect{{"inspect", test_data("lightgbm/4.7.0_one_leaf/model.txt")}};
  const Outcome expected = forestvm(inspect.words);
  const std::uint64_t count = allocations_of(inspect);
  for (std::uint64_t after = count / 2; after < count; ++after)
    expect_clean_failure(inspect, "memory once " + std::to_string(after), expected, "");
}

TEST_F(OutOfMemory, Verify) { expect_clean_failures({{"verify", program_}}); }

TEST_F(OutOfMemory, Compile) { expect_clean_failures({{"compile", model_, "-o", out_}}); }

TEST_F(OutOfMemory, Run) {
  expect_clean_failures({{"run", model_, rows_, "-o", out_, "--threads", "1"}});
  expect_clean_failures({{"run", model_, rows_, "--threads", "2", "--schedule", "xgboost"}});
  expect_clean_failures({{"run", program_, rows_, "--output", "leaf", "-o", out_}});
}

TEST_F(OutOfMemory, Encode) { expect_clean_failures({{"encode", program_, rows_, "-o", out_}}); }

TEST_F(OutOfMemory, DumpAndAssemble) {
  expect_clean_failures({{"dump", model_, "--stage", "loops"}});
  expect_clean_failures({{"assemble", text_, "--data", program_, "-o", out_}});
}

TEST_F(OutOfMemory, Export) { expect_clean_failures({{"export", model_, "-o", out_}}); }

TEST_F(OutOfMemory, Diff) { expect_clean_failures({{"diff", model_, rows_}}); }

TEST_F(OutOfMemory, Bench) {
  expect_clean_failures({{"bench", program_, "--batch", "8", "--seconds", "0.001"}, false});
}

TEST_F(OutOfMemory, Devices) { expect_clean_failures({{"devices"}, false}); }

TEST_F(OutOfMemory, Threads) {
  const Command run{{"run", model_, rows_, "-o", out_, "--threads", "3", "--schedule", "xgboost"}};
  const Outcome expected = forestvm(run.words);
  const std::string result = content_of(out_);
  const Outcome all_cores = failing({{"run", model_, rows_}}, "threads lasting 0");
  EXPECT_TRUE(all_cores.code == 3 || std::thread::hardware_concurrency() <= 1) << all_cores.err;
  EXPECT_EQ(all_cores.err.find("cannot start 0"), std::string::npos) << all_cores.err;
  // Lets each of the first two threads fail; later ones are oneTBB's own.
  for (const char* const how : {"threads once ", "threads lasting "}) {
    for (const char* const after : {"0", "1"}) {
      const Outcome outcome = failing(run, std::string(how) + after);
      EXPECT_EQ(outcome.code, 3);
      EXPECT_NE(outcome.err.find("cannot start 3 threads"), std::string::npos) << outcome.err;
    }
    for (const char* const after : {"2", "3", "4"})
      expect_clean_failure(run, std::string(how) + after, expected, result);
  }
}

}  // namespace
}  // namespace forestvm::cli::test_out_of_memory
