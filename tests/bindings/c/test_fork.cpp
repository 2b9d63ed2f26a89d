// Processes that fork while they predict. The child has the memory of all threads, with the locks that they
// held, but none of the threads. It goes on predicting, with threads of its own, to the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "support/child.hpp"
#include "support/memory.hpp"
#include "vm/host/executor.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_fork {
namespace {

using support::in_child;

constexpr std::size_t kRows = 512;

/// Threads that work until they are stopped.
class Busy {
 public:
  Busy(unsigned threads, const std::function<void()>& work) {
    for (unsigned i = 0; i < threads; ++i)
      threads_.emplace_back([this, work] {
        do work();
        while (!stop_);
      });
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

class Fork : public testing::Test {
 protected:
  void SetUp() override {
    if (!support::kChildrenHaveThreads)
      GTEST_SKIP() << "no threads after a fork: ThreadSanitizer does not support them";
    options_.threads = 3;
    program_ = opened();
    context_ = context_of(program_);
    ASSERT_TRUE(predict(context_.get(), expected_));
  }

  OpenProgram opened() { return open_memory(image_, &options_); }

  bool predict(fvm_context* context, std::vector<float>& scores) const {
    scores.assign(kRows * 3, 0);
    return fvm_predict_f32(context, rows_.data(), kRows, 3, FVM_OUTPUT_VALUE, scores.data(), scores.size()) ==
           FVM_OK;
  }
  bool predicts(fvm_context* context) const {
    std::vector<float> scores;
    return predict(context, scores) && scores == expected_;
  }

  /// Predicts in a child with the parent's program and context, and with new ones.
  bool works_in_a_child() {
    if (!predicts(context_.get()) || !predicts(context_of(program_).get())) return false;
    OpenProgram own = opened();
    const OpenContext context = context_of(own);
    own.reset();
    // The first calls of a program use its threads; later ones only if that was measured to be faster.
    return predicts(context.get()) && support::thread_count() == options_.threads;
  }

  const Program image_ =
      compiled(small_forest({.trees = 30}), "tile(batch, b0, b1, 32); parallel(b0); tile(tree, t0, t1, 5)");
  const std::vector<float> rows_ = small_rows(kRows, 3);
  fvm_open_options options_ = FVM_OPEN_OPTIONS_INIT;
  OpenProgram program_;
  OpenContext context_;
  std::vector<float> expected_;
};

/// Skips a test that forks while other threads allocate memory, if it cannot pass.
#define FVM_SKIP_FORK_BESIDE_THREADS() \
  if (FVM_SANITIZED != 0)              \
  GTEST_SKIP()                         \
      << "no fork beside threads: a sanitizer's locks may stay taken in the child, and ThreadSanitizer ends it"

/// Forks while other threads predict, open programs, start and end.
class ForkBesideThreads : public Fork {
 protected:
  void SetUp() override {
    FVM_SKIP_FORK_BESIDE_THREADS();
    Fork::SetUp();
  }
};

TEST_F(Fork, AfterAParallelCall) {
  for (int round = 0; round < 50; ++round)
    ASSERT_TRUE(in_child([&] { return works_in_a_child(); })) << "round " << round;
  EXPECT_TRUE(predicts(context_.get()));
}

TEST_F(ForkBesideThreads, WhileOtherThreadsPredict) {
  const Busy others(3, [&] { EXPECT_TRUE(predicts(context_of(program_).get())); });
  for (int round = 0; round < 200; ++round)
    ASSERT_TRUE(in_child([&] { return works_in_a_child(); })) << "round " << round;
}

TEST_F(ForkBesideThreads, WhileOtherThreadsOpenPrograms) {
  std::atomic<std::uint32_t> threads = 4;
  const Busy others(2, [&] {
    fvm_open_options options = options_;
    if (threads < 20) options.threads = threads++;  // each number up to 20 is new once
    EXPECT_TRUE(predicts(context_of(open_memory(image_, &options)).get()));
  });
  for (int round = 0; round < 100; ++round)
    ASSERT_TRUE(in_child([&] { return works_in_a_child(); })) << "round " << round;
}

TEST_F(ForkBesideThreads, InAChild) {
  const auto grandchild = [&] { return in_child([&] { return works_in_a_child(); }); };
  // oneTBB takes its locks when threads start and end.
  const auto come_and_go = [&] {
    std::thread([&] { EXPECT_TRUE(predicts(context_of(program_).get())); }).join();
  };
  const Busy others(4, come_and_go);
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(in_child([&] { return works_in_a_child() && grandchild() && predicts(context_.get()); }));
    ASSERT_TRUE(in_child(grandchild));
  }
}

TEST_F(Fork, ManyThreadsOfAChildPredict) {
  const auto work = [&] {
    std::atomic<int> right = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] { right += predicts(context_of(program_).get()) ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
    return right == 8;
  };
  for (int round = 0; round < 50; ++round) ASSERT_TRUE(in_child(work)) << "round " << round;
}

TEST_F(ForkBesideThreads, TheChildEndsLikeAnyProcess) {
  const Busy others(2, [&] { EXPECT_TRUE(predicts(context_of(program_).get())); });
  for (int round = 0; round < 50; ++round) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      if (!works_in_a_child()) ::_exit(EXIT_FAILURE);
      context_.reset();
      program_.reset();
      std::exit(EXIT_SUCCESS);  // NOLINT(concurrency-mt-unsafe): the child's threads are idle
    }
    ASSERT_TRUE(support::ended_well(child)) << "round " << round;
  }
}

/// Runs each test with both executors.
class ForkExecutor : public testing::TestWithParam<host::MakeExecutor*> {};

INSTANTIATE_TEST_SUITE_P(All, ForkExecutor,
                         testing::Values(&host::make_executor, &host::make_thread_executor),
                         [](const auto& test) { return test.index == 0 ? "Default" : "Threads"; });

TEST_P(ForkExecutor, RunsLoopsInAChild) {
  FVM_SKIP_FORK_BESIDE_THREADS();
  auto executor = host::make_forkable_executor(3, *GetParam());
  const auto each_once = [&] {
    std::vector<std::atomic<int>> seen(100);
    auto body = [&](std::uint32_t i) { seen[i].fetch_add(1, std::memory_order_relaxed); };
    executor->run(static_cast<std::uint32_t>(seen.size()), body);
    return std::all_of(seen.begin(), seen.end(), [](const std::atomic<int>& count) { return count == 1; });
  };
  const auto in_the_child = [&] {
    const bool right = each_once() && support::thread_count() == 3;
    executor.reset();
    return right && support::has_at_most_threads(1);
  };
  const Busy others(3, [&] { EXPECT_TRUE(each_once()); });
  for (int round = 0; round < 200; ++round) ASSERT_TRUE(in_child(in_the_child)) << "round " << round;
}

}  // namespace
}  // namespace forestvm::test::test_fork
