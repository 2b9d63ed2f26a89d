// See race.hpp.
#include "scheduler/choose/race.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace forestvm::scheduler {
namespace {

constexpr std::size_t kMinTurnsToJudge = 16;

/// Sorts the first `count` candidates by time, the fastest first. Equally fast ones keep their order.
void rank(std::vector<Standing>& standings, std::size_t count) {
  std::stable_sort(standings.begin(), standings.begin() + static_cast<std::ptrdiff_t>(count),
                   [](const Standing& a, const Standing& b) { return a.typical() < b.typical(); });
}

/// Measures the first `count` candidates in turns. Returns false if it was stopped.
Result<bool> take_turns(std::vector<Standing>& standings, std::size_t count, std::size_t turns,
                        const MeasureOnce& measure, const ShouldStop& stop) {
  for (std::size_t turn = 0; turn < turns; ++turn)
    for (std::size_t i = 0; i < count; ++i) {
      if (stop()) return false;
      Standing& standing = standings[(i + turn) % count];  // no candidate always follows the same one
      FVM_ASSIGN(const double time, measure(standing.candidate));
      standing.times.push_back(time);
    }
  return true;
}

}  // namespace

double Standing::typical() const {
  if (times.empty()) return std::numeric_limits<double>::infinity();
  std::vector<double> sorted = times;
  const auto quarter = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 4);
  std::nth_element(sorted.begin(), quarter, sorted.end());
  return *quarter;
}

bool is_ahead(const Standing& a, const Standing& b) {
  const std::size_t turns = std::min(a.times.size(), b.times.size());
  if (turns < kMinTurnsToJudge) return false;
  double wins = 0;
  for (std::size_t i = 0; i < turns; ++i) wins += a.times[i] < b.times[i] ? 1 : 0;
  const auto count = static_cast<double>(turns);
  return wins >= count / 2 + std::sqrt(count);
}

Result<RaceResult> race(std::size_t candidates, const MeasureOnce& measure, const ShouldStop& stop) {
  FVM_CHECK(candidates > 0);
  RaceResult result;
  std::vector<Standing>& standings = result.standings;
  for (std::size_t i = 0; i < candidates; ++i) standings.push_back({i});
  std::size_t remaining = candidates;
  for (std::size_t turns = kFirstTurns; remaining > 1 && !result.is_separated; turns *= 2) {
    const std::size_t left = kMaxTurns - standings[0].times.size();
    FVM_ASSIGN(const bool done, take_turns(standings, remaining, std::min(turns, left), measure, stop));
    rank(standings, remaining);
    if (!done) break;
    result.is_separated = remaining == 2 && is_ahead(standings[0], standings[1]);
    if (remaining == 2 && standings[0].times.size() >= kMaxTurns) break;
    remaining = std::max<std::size_t>(2, (remaining + 1) / 2);
  }
  return result;
}

}  // namespace forestvm::scheduler
