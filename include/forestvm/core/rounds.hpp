// The rounds of a model's trees, from which a call may choose some.
#pragma once

#include <cstdint>

namespace forestvm {

/// Rounds [begin, end) of a model, counted from 0.
struct Rounds {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  bool operator==(const Rounds&) const = default;
};

/// The meaning of the scores of some of a program's rounds.
enum class RoundRule : std::uint8_t {
  None = 0,       ///< None: the trees are not rounds of boosting, and all of them are needed.
  Sums = 1,       ///< Sums of the rounds' trees, from the base scores on.
  FirstBase = 2,  ///< Sums, too; the base scores belong to the first round.
  Averages = 3,   ///< Sums, from which values are computed after division by the number of rounds.
};
inline constexpr std::uint8_t kRoundRules = 4;

}  // namespace forestvm
