// A process that opens and closes programs, and starts threads that predict and end, again and again: its
// memory and its number of threads do not grow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "support/memory.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_open_close {
namespace {

constexpr std::size_t kRows = 128;

/// The number of repetitions. It is large enough to see a leak: 1 KiB per repetition would be 3 MiB.
constexpr int kRepetitions = support::kMemoryIsMeasured ? 3000 : 300;
constexpr std::size_t kMaxMib = 2;

void expect_flat(const std::function<void()>& work) {
  for (int i = 0; i < kRepetitions / 10; ++i) work();
  const std::size_t before = support::memory_mib("VmRSS"), threads = support::thread_count();
  for (int i = 0; i < kRepetitions; ++i) work();
  const std::size_t after = support::memory_mib("VmRSS");
  EXPECT_TRUE(after <= before + kMaxMib || !support::kMemoryIsMeasured) << before << " MiB, then " << after;
  EXPECT_TRUE(support::has_at_most_threads(threads)) << threads << ", then " << support::thread_count();
}

class OpenClose : public testing::TestWithParam<std::uint32_t> {
 protected:
  OpenClose() { options_.threads = GetParam(); }

  void predict(fvm_context* context) const {
    std::vector<float> scores(kRows * 3);
    ASSERT_EQ(fvm_predict_f32(context, rows_.data(), kRows, 3, FVM_OUTPUT_RAW, scores.data(), scores.size()),
              FVM_OK)
        << fvm_last_error();
  }

  const Program image_ = compiled(small_forest(), "tile(batch, b0, b1, 32); parallel(b0)");
  const std::vector<float> rows_ = small_rows(kRows, 3);
  fvm_open_options options_ = FVM_OPEN_OPTIONS_INIT;
};

INSTANTIATE_TEST_SUITE_P(Threads, OpenClose, testing::Values(0u, 1u, 2u, 3u),
                         testing::PrintToStringParamName());

TEST_P(OpenClose, ManyTimes) {
  expect_flat([&] {
    const OpenProgram program = open_memory(image_, &options_);
    predict(context_of(program).get());
  });
}

TEST_P(OpenClose, ManyThreadsOneAfterTheOther) {
  const OpenProgram program = open_memory(image_, &options_);
  expect_flat([&] { std::thread([&] { predict(context_of(program).get()); }).join(); });
}

TEST_P(OpenClose, SeveralAtOnce) {
  expect_flat([&] {
    std::vector<OpenProgram> programs(4);
    for (OpenProgram& program : programs) program = open_memory(image_, &options_);
    std::vector<std::thread> threads;
    for (const OpenProgram& program : programs)
      threads.emplace_back([&] { predict(context_of(program).get()); });
    for (std::thread& thread : threads) thread.join();
  });
}

}  // namespace
}  // namespace forestvm::test::test_open_close
