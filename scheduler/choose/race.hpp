// A race between candidates whose times are noisy: successive halving on measured times. All that remain are measured in
// turns, so that what disturbs the machine disturbs all; after each round the slower half leaves, and the next round has
// twice as many turns. The last two run until one is ahead beyond chance, or for kMaxTurns turns.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::scheduler {

/// Measures a candidate once; returns the time.
using MeasureOnce = std::function<Result<double>(std::size_t candidate)>;
/// Returns whether to stop, because time is up or the user said so.
using ShouldStop = std::function<bool()>;

inline constexpr std::size_t kFirstTurns = 4;  ///< turns of the first round
inline constexpr std::size_t kMaxTurns = 256;  ///< most turns between the last two

/// A candidate's times.
struct Standing {
  std::size_t candidate = 0;
  std::vector<double> times{};  ///< one for each turn

  /// Returns the time that a quarter of the turns did not exceed: disturbances only lengthen times, but the smallest of
  /// many may be luck. Infinite if it was never measured.
  double typical() const;
};

struct RaceResult {
  std::vector<Standing>
      standings{};            ///< the fastest first; of those that left, later rounds before earlier ones
  bool is_separated = false;  ///< whether the first is ahead of the second beyond chance
};

/// Races `candidates`, at least one. When stopped, the standings are those so far.
Result<RaceResult> race(std::size_t candidates, const MeasureOnce& measure, const ShouldStop& stop);

/// Returns whether `a` was faster than `b` in so many of the turns that both had as chance seldom gives: two standard
/// deviations above half of them, of at least 16.
bool is_ahead(const Standing& a, const Standing& b);

}  // namespace forestvm::scheduler
