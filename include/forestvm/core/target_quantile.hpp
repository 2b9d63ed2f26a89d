// A quantile of counted targets, the same bits on every device: that of quantile-forest 1.4 (calc_weighted_quantile,
// interpolation "linear"), operation by operation, in which the weight of a target is its number of rows.
#pragma once

#include <cstdint>
#include <limits>

#include <forestvm/core/platform.hpp>

namespace forestvm {

/// Targets whose rows are counted together, too, so that a number of rows is found whatever the number of targets.
inline constexpr std::uint32_t kTargetBlock = 256;

/// Returns the number of blocks of some targets.
FVM_HOST_DEVICE constexpr std::uint32_t target_blocks(std::uint32_t targets) {
  return targets / kTargetBlock + (targets % kTargetBlock != 0 ? 1 : 0);
}

/// Returns a quantile of `total` rows, interpolated between two targets; NaN if there are no rows. counts[i] is the
/// number of rows with targets[i], of which there are `size`, ascending; blocks[i] is that of a block of targets.
template <class Counts>
FVM_HOST_DEVICE inline double target_quantile(double quantile, std::uint64_t total, const Counts& counts,
                                              const Counts& blocks, const double* targets,
                                              std::uint32_t size) {
  if (total == 0) return std::numeric_limits<double>::quiet_NaN();
  const double last = static_cast<double>(total) - 1;  // index of the last row, sorted by targets
  const double passed = quantile * last + 1;
  std::uint64_t below = 0;  // number of rows with targets below `next`
  std::uint32_t block = 0;
  while (block < target_blocks(size) && static_cast<double>(below + blocks[block]) <= passed)
    below += blocks[block++];
  // First target at which more than `passed` rows are counted.
  std::uint32_t next = block * kTargetBlock;
  for (; next < size && static_cast<double>(below + counts[next]) <= passed; ++next) below += counts[next];
  std::uint32_t before = next < size ? next : size;  // then the last target below it that some row has
  while (before != 0 && counts[before - 1] == 0)
    before -= blocks[(before - 1) / kTargetBlock] == 0 ? (before - 1) % kTargetBlock + 1 : 1;
  if (next >= size) return before == 0 ? targets[0] : targets[before - 1];
  if (below == 0 || before == 0) return targets[next];
  const double low = targets[before - 1], high = targets[next];
  const double count = counts[next];
  const double of_low = (static_cast<double>(below) - 1) / last;
  const double of_high = (static_cast<double>(below) + count - 1) / last;
  const double at_low = of_low < quantile ? of_low : quantile;
  double at_high = quantile < of_high ? of_high : quantile;
  at_high = at_low + (at_high - at_low) / count;  // the first row with this target
  if (quantile >= at_high) return high;
  const double fraction = (quantile - at_low) / (at_high - at_low);
  if (fraction <= 0) return low;
  return fraction >= 1 ? high : low + fraction * (high - low);
}

}  // namespace forestvm
