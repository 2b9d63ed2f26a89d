// Counts of the training rows with each target, as quantiles need them: counts of blocks of targets lead to the target
// at which a number of rows is passed, however many targets there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/core/target_quantile.hpp>

namespace forestvm::host {

class TargetCounts {
 public:
  /// Returns how many numbers the counts of some targets take.
  static constexpr std::size_t size(std::size_t targets) {
    return targets + target_blocks(static_cast<std::uint32_t>(targets));
  }

  /// Takes the different targets, ascending, and memory for size(targets.size()) numbers, which must be 0.
  TargetCounts(std::span<const double> targets, std::uint32_t* memory)
      : targets_(targets),
        counts_(memory, targets.size()),
        blocks_(memory + targets.size(), size(targets.size()) - targets.size()) {}

  void add(std::span<const std::uint32_t> rows) {
    for (const std::uint32_t target : rows) {
      ++counts_[target];
      ++blocks_[target / kTargetBlock];
    }
    total_ += rows.size();
  }

  /// Removes what was added.
  void remove(std::span<const std::uint32_t> rows) {
    for (const std::uint32_t target : rows) {
      --counts_[target];
      --blocks_[target / kTargetBlock];
    }
    total_ -= rows.size();
  }

  /// Returns a quantile of the targets, interpolated between two of them; NaN if there are none.
  double quantile(double quantile) const;

 private:
  std::span<const double> targets_;
  std::span<std::uint32_t> counts_, blocks_;
  std::uint64_t total_ = 0;
};

}  // namespace forestvm::host
