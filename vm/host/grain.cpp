// See grain.hpp.
#include "vm/host/grain.hpp"

#include <algorithm>
#include <bit>

namespace forestvm::host {
namespace {

/// Nanoseconds above which a call is always shared, because starting tasks costs only microseconds.
constexpr float kLongCall = 200'000;

// The slower way is tried again in a few consecutive calls, from time to time. They are consecutive because threads
// that have slept take longer to come, and the way is judged as it would be if it were always taken.
constexpr std::uint32_t kTries = 4, kTriedEvery = 256;

/// The factor by which a known time moves with each call: a lasting change is followed within a few tens of
/// calls.
constexpr float kStep = 1.1f;

std::uint32_t divide_up(std::uint32_t a, std::uint32_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// Returns the rows of a task, a multiple of `unit`: there are as many tasks as threads can share evenly, and none has
/// more than `most` rows.
std::uint32_t task_rows(std::uint32_t rows, std::uint32_t most, std::uint32_t unit, unsigned threads) {
  const std::uint32_t workers = std::min(threads, divide_up(rows, unit));
  const std::uint32_t tasks = divide_up(divide_up(rows, most), workers) * workers;
  return std::min(most, divide_up(divide_up(rows, tasks), unit) * unit);
}

}  // namespace

Grain::Tasks Grain::divide(std::uint32_t rows, std::uint32_t most, unsigned threads) {
  const std::uint32_t unit = std::min(kGrainRows, most);
  if (rows <= unit) return {most, false, false};
  const std::uint32_t fine = task_rows(rows, most, unit, threads);
  Calls& calls = calls_[static_cast<std::size_t>(std::bit_width(rows))];
  const float shared = calls.shared.load(std::memory_order_relaxed);
  const std::uint32_t number = calls.count.fetch_add(1, std::memory_order_relaxed);
  if (number >= kTries && shared * static_cast<float>(rows) > kLongCall) return {fine, true, true};
  const float alone = calls.alone.load(std::memory_order_relaxed);
  bool share = shared <= alone;
  if (number < 2 * kTries || alone == 0)
    share = number < kTries;
  else if (number % kTriedEvery < kTries)
    share = !share;
  return share ? Tasks{fine, true, true} : Tasks{most, false, true};
}

void Grain::record(std::uint32_t rows, bool shared, Clock::duration taken) {
  Calls& calls = calls_[static_cast<std::size_t>(std::bit_width(rows))];
  std::atomic<float>& known = shared ? calls.shared : calls.alone;
  const float row = std::chrono::duration<float, std::nano>(taken).count() / static_cast<float>(rows);
  const float before = known.load(std::memory_order_relaxed);
  // The time moves by steps towards the median, so that the length of an occasional interruption does not count.
  // The first calls start the threads, so only the fastest of them counts.
  const bool first = calls.count.load(std::memory_order_relaxed) <= 2 * kTries;
  const float after = first ? std::min(before, row) : row < before ? before / kStep : before * kStep;
  known.store(before == 0 ? row : after, std::memory_order_relaxed);
}

}  // namespace forestvm::host
