// The verifier's rule for thresholds. A forest may have many, so this file is compiled for speed.
#include <algorithm>
#include <cmath>

#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {

const char* ranks_rule(std::span<const float> ranks) {
  // The loop has no branch, so that the compiler makes vectors of it.
  std::uint32_t broken = std::isnan(ranks.front()) ? 1 : 0;
  for (std::size_t i = 1; i < ranks.size(); ++i) broken |= ranks[i - 1] < ranks[i] ? 0u : 1u;
  if (broken == 0) return nullptr;
  const bool numbers = std::ranges::none_of(ranks, [](float rank) { return std::isnan(rank); });
  return numbers ? "its thresholds do not ascend" : "a threshold is not a number";
}

}  // namespace forestvm::bytecode
