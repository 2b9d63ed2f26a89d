// The executors: every index runs once, for any count, in nested loops and with many callers; and a thread
// that waits for its loop runs only that loop, so that a caller's thread-local context is never used twice at
// once.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <ostream>
#include <set>
#include <thread>
#include <vector>

#include <forestvm/backend.hpp>

#include "vm/host/executor.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_executors {
namespace {

using host::Executor;

struct Maker {
  const char* name;
  host::MakeExecutor* make;
};

/// Names the parameter in lists of tests.
void PrintTo(const Maker& maker, std::ostream* out) { *out << maker.name; }

class Executors : public testing::TestWithParam<Maker> {};

INSTANTIATE_TEST_SUITE_P(All, Executors,
                         testing::Values(Maker{"Default", host::make_executor},
                                         Maker{"Threads", host::make_thread_executor}),
                         [](const auto& made) { return std::string(made.param.name); });

/// Runs a loop and checks that each index ran once.
void expect_each_once(const Executor& executor, std::uint32_t count) {
  std::vector<std::atomic<int>> seen(count);
  auto body = [&](std::uint32_t i) { seen.at(i).fetch_add(1, std::memory_order_relaxed); };
  executor.run(count, body);
  for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(seen[i].load(), 1) << i << " of " << count;
}

TEST_P(Executors, EachIndexOnce) {
  for (const unsigned threads : {2u, 3u, 7u}) {
    const auto executor = GetParam().make(threads);
    EXPECT_EQ(executor->threads(), threads);
    EXPECT_STRNE(executor->name(), "");
    for (const std::uint32_t count : {0u, 1u, 2u, 3u, 64u, 1000u, 100000u})
      expect_each_once(*executor, count);
  }
}

TEST_P(Executors, ManyShortLoops) {
  const auto executor = GetParam().make(4);
  for (int i = 0; i < 2000; ++i) expect_each_once(*executor, static_cast<std::uint32_t>(i % 5));
}

TEST_P(Executors, Nested) {
  const auto executor = GetParam().make(4);
  std::atomic<int> calls = 0;
  auto innermost = [&](std::uint32_t) { calls.fetch_add(1, std::memory_order_relaxed); };
  auto inner = [&](std::uint32_t) { executor->run(11, innermost); };
  auto outer = [&](std::uint32_t) { executor->run(7, inner); };
  executor->run(13, outer);
  EXPECT_EQ(calls.load(), 13 * 7 * 11);
}

TEST_P(Executors, ManyCallersAtOnce) {
  const auto executor = GetParam().make(3);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 6; ++caller)
    callers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) expect_each_once(*executor, 50);
    });
  for (std::thread& caller : callers) caller.join();
}

TEST_P(Executors, WhatALoopWroteIsSeenAfterIt) {
  const auto executor = GetParam().make(4);
  std::vector<std::uint32_t> values(10000);
  auto body = [&](std::uint32_t i) { values[i] = i + 1; };
  executor->run(static_cast<std::uint32_t>(values.size()), body);
  for (std::uint32_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i + 1);
}

TEST_P(Executors, MadeAndDroppedWithoutWork) {
  for (int i = 0; i < 50; ++i) EXPECT_NE(GetParam().make(3), nullptr);
}

/// A caller's loop whose body runs the loop of a prediction on the same threads. A body that waits for its
/// inner loop must not start another body of the outer one.
TEST_P(Executors, AWaitingThreadDoesNotEnterTheCallersLoopAgain) {
  const auto executor = GetParam().make(8);
  std::atomic<int> entered_twice = 0;
  auto inner = [&](std::uint32_t i) {
    // Uneven, so that idle threads take work of another's inner loop.
    std::this_thread::sleep_for(std::chrono::microseconds(20 * (i % 4)));
  };
  auto outer = [&](std::uint32_t) {
    static thread_local int depth = 0;
    if (++depth > 1) entered_twice.fetch_add(1);
    executor->run(8, inner);
    --depth;
  };
  for (int repetition = 0; repetition < 10; ++repetition) executor->run(64, outer);
  EXPECT_EQ(entered_twice.load(), 0);
}

/// Runs a loop of `bodies` bodies that wait for each other. False if they did not all start within a minute.
bool meet(const Executor& executor, unsigned bodies) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::atomic<unsigned> inside = 0;
  std::atomic<bool> alone = false;
  auto body = [&](std::uint32_t) {
    inside.fetch_add(1);
    while (inside.load() < bodies && !alone) {
      alone = std::chrono::steady_clock::now() > give_up;
      std::this_thread::yield();
    }
  };
  executor.run(bodies, body);
  return !alone;
}

TEST_P(Executors, HaveTheirThreadsWhateverOthersHave) {
  const auto few = GetParam().make(3);
  const auto many = GetParam().make(6);
  EXPECT_TRUE(meet(*few, 3));
  EXPECT_TRUE(meet(*many, 6));
  EXPECT_TRUE(meet(*GetParam().make(2), 2));
  EXPECT_TRUE(meet(*many, 6));
}

/// Many more callers than an executor has threads: most are in a loop at the same time, on their own threads.
TEST_P(Executors, CallersDoNotQueue) {
  constexpr int kCallers = 12, kTogether = 8;
  const auto executor = GetParam().make(2);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::atomic<int> inside = 0;
  std::atomic<bool> alone = false;
  auto body = [&](std::uint32_t i) {
    if (i != 0) return;
    inside.fetch_add(1);
    while (inside.load() < kTogether && !alone) {
      alone = std::chrono::steady_clock::now() > give_up;
      std::this_thread::yield();
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) callers.emplace_back([&] { executor->run(4, body); });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(inside.load(), kCallers);
  EXPECT_FALSE(alone);
}

/// Runs a loop whose bodies run loops. Returns the threads that ran bodies of any of them.
std::set<std::thread::id> threads_of_nested_loops(const Executor& executor) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  auto inner = [&](std::uint32_t) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  };
  auto outer = [&](std::uint32_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // time for other threads to come
    executor.run(8, inner);
  };
  executor.run(32, outer);
  return threads;
}

TEST(ThreadLimit, HoldsForLoopsOfTheThreadThatSetIt) {
  const auto executor = host::make_forkable_executor(4, host::make_thread_executor);
  limit_threads(1);
  EXPECT_EQ(thread_limit(), 1u);
  EXPECT_EQ(threads_of_nested_loops(*executor), std::set{std::this_thread::get_id()});
  limit_threads(2);
  expect_each_once(*executor, 1000);
  EXPECT_LE(threads_of_nested_loops(*executor).size(), 2u);
  EXPECT_EQ(thread_limit(), 2u);
  std::thread([] { EXPECT_EQ(thread_limit(), 0u); }).join();
  limit_threads(0);
  EXPECT_GT(threads_of_nested_loops(*executor).size(), 2u);
  EXPECT_EQ(executor->threads(), 4u);
}

TEST(SharedExecutor, OneThreadNeedsNone) {
  const auto executor = host::shared_executor(1);
  ASSERT_TRUE(executor.ok());
  EXPECT_EQ(*executor, nullptr);
}

TEST(SharedExecutor, AsManyThreadsAsTheMachineHas) {
  const auto executor = host::shared_executor(0);
  ASSERT_TRUE(executor.ok());
  if (*executor == nullptr) return;  // the machine has one core
  EXPECT_GE((*executor)->threads(), 2u);
  EXPECT_EQ(*executor, *host::shared_executor((*executor)->threads()));
  expect_each_once(**executor, 5000);
}

TEST(SharedExecutor, IsOneForEachNumberOfThreads) {
  const Executor* const two = *host::shared_executor(2);
  const Executor* const three = *host::shared_executor(3);
  EXPECT_NE(two, three);
  EXPECT_EQ(two, *host::shared_executor(2));
  EXPECT_EQ(three, *host::shared_executor(3));
  EXPECT_EQ(two->threads(), 2u);
  EXPECT_EQ(three->threads(), 3u);
}

TEST(SharedExecutor, ManyAskAtOnce) {
  std::atomic<const Executor*> found = nullptr;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      const Executor *const mine = *host::shared_executor(6), *others = nullptr;
      EXPECT_TRUE(found.compare_exchange_strong(others, mine) || mine == others);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Backend, TooManyThreadsAreRefusedNotTried) {
  const Program program = rich_program();
  for (const unsigned threads : {1'000'000u, 0x7fffffffu, 0xfffffffeu, 0xffffffffu}) {
    const auto predictor = host_backend(program, {.threads = threads});
    ASSERT_FALSE(predictor.ok()) << threads;
    EXPECT_EQ(predictor.error().code, ErrorCode::Usage);
    EXPECT_NE(predictor.error().text().find("threads"), std::string::npos) << predictor.error().text();
  }
}

}  // namespace
}  // namespace forestvm::test::test_executors
