// A race between candidates whose times are noisy, by successive halving on measured times. The remaining candidates
// are measured in turns, so that a disturbance of the machine affects all of them. After each round the slower half
// drops out, and the next round has twice as many turns. The last two are measured until one is ahead beyond
// chance, or for kMaxTurns turns.
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

/// A candidate and its times.
struct Standing {
  std::size_t candidate = 0;
  std::vector<double> times{};  ///< one time for each turn

  /// Returns the time that a quarter of the turns did not exceed: disturbances only lengthen times, but the smallest of
  /// many may be luck. Returns infinity if the candidate was never measured.
  double typical() const;
};

struct RaceResult {
  /// The remaining candidates, the fastest first, then the candidates that dropped out, the latest round first.
  std::vector<Standing> standings{};
  bool is_separated = false;  ///< true if the first is ahead of the second beyond chance
};

/// Races `candidates` candidates, at least one. If it is stopped, the result has the standings so far.
Result<RaceResult> race(std::size_t candidates, const MeasureOnce& measure, const ShouldStop& stop);

/// Returns whether `a` was faster than `b` beyond chance: in more of the turns that both had than half of them, by two
/// standard deviations. Both must have had at least 16 turns.
bool is_ahead(const Standing& a, const Standing& b);

}  // namespace forestvm::scheduler
