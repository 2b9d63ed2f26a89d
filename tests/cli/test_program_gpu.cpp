// GPUs through the real program, with a library whose device is the emulator: every command that predicts,
// the list of devices, and exit code 3 if there is no library or device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "spawn.hpp"

namespace forestvm::cli::test_program_gpu {
namespace {

class Gpu : public ProgramTest {
 protected:
  void SetUp() override { setenv("FORESTVM_PLUGINS", FORESTVM_EMULATED_LIBRARY, 1); }
  void TearDown() override { unsetenv("FORESTVM_PLUGINS"); }

  void expect_failure(const std::vector<std::string>& words, int code, const std::string& part) const {
    const Outcome outcome = forestvm(words);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }

  const std::string model_ = test_data("diabetes/model.json");
  const std::string rows_ = test_data("diabetes/rows.npy");
};

TEST_F(Gpu, PredictsComparesAndTimes) {
  const std::string out = file("raw.npy");
  const Outcome ran =
      forestvm({"run", model_, rows_, "--backend", "cuda", "--device", "0", "--output", "raw", "-o", out});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Outcome compared = forestvm({"diff", model_, rows_, "--backend", "cuda", "--expected", out});
  EXPECT_EQ(compared.code, 0) << compared.err;
  const Outcome timed =
      forestvm({"bench", model_, rows_, "--backend", "cuda", "--batch", "4", "--seconds", "0.002", "--json"});
  EXPECT_EQ(timed.code, 0) << timed.err;
  EXPECT_EQ(nlohmann::json::parse(timed.out)[0]["runs_on"],
            "emulator of a GPU, warps of 32 threads, orders from seed 1");
}

TEST_F(Gpu, Devices) {
  const Outcome listed = forestvm({"devices"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_TRUE(listed.out.starts_with("an emulated device\nno HIP backend: ")) << listed.out;
}

TEST_F(Gpu, AbsentOnesAreOfTheEnvironment) {
  expect_failure({"run", model_, rows_, "--backend", "cuda", "--device", "7"}, 3,
                 "forestvm: no emulated device 7");
  expect_failure({"run", model_, rows_, "--backend", "hip"}, 3, "is of another build of forestvm");
  setenv("FORESTVM_PLUGINS", "no/such/folder", 1);
  for (const char* const command : {"run", "diff", "bench"})
    expect_failure({command, model_, rows_, "--backend", "cuda"}, 3,
                   "forestvm: no CUDA backend: there is no no/such/folder/libforestvm_cuda.so");
  EXPECT_EQ(forestvm({"devices"}).code, 0);
}

TEST_F(Gpu, RefusesWrongUsage) {
  expect_failure({"run", model_, rows_, "--backend", "cuda", "--threads", "2"}, 2,
                 "--threads is for the host: --backend cuda has none");
  expect_failure({"bench", model_, rows_, "--backend", "hip", "--target", "baseline"}, 2,
                 "--target is for the host: --backend hip has none");
  expect_failure({"diff", model_, rows_, "--device", "1"}, 2,
                 "--device is for GPUs: --backend auto has none");
  expect_failure({"run", model_, rows_, "--backend", "cuda", "--device", "x"}, 2, "--device 'x'");
  expect_failure({"run", model_, rows_, "--backend", "cuda", "--schedule", "rows"}, 1,
                 model_ + ": none of the program's loops is mapped");
}

}  // namespace
}  // namespace forestvm::cli::test_program_gpu
