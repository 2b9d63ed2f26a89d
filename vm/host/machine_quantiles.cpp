// The instruction `quantiles`: the leaves that a row reaches -> quantiles of the targets of their training rows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "vm/host/leaf_lists.hpp"
#include "vm/host/machine.hpp"
#include "vm/host/target_counts.hpp"

namespace forestvm::host {

// The numbers are those of quantile-forest 1.4 (calc_weighted_quantile, interpolation "linear"), operation by
// operation, in which the weight of a target is its number of rows.
[[gnu::cold]] double TargetCounts::quantile(double quantile) const {
  if (total_ == 0) return std::numeric_limits<double>::quiet_NaN();
  const double last = static_cast<double>(total_) - 1;  // index of the last row, sorted by targets
  const double passed = quantile * last + 1;
  std::uint64_t below = 0;  // number of rows with targets below `next`
  std::size_t block = 0;
  while (block < blocks_.size() && static_cast<double>(below + blocks_[block]) <= passed)
    below += blocks_[block++];
  std::size_t next = block * kBlock;  // first target at which more than `passed` rows are counted
  for (; next < counts_.size() && static_cast<double>(below + counts_[next]) <= passed; ++next)
    below += counts_[next];
  std::size_t before = std::min(next, counts_.size());  // then the last target below it that some row has
  while (before != 0 && counts_[before - 1] == 0)
    before -= blocks_[(before - 1) / kBlock] == 0 ? (before - 1) % kBlock + 1 : 1;
  if (next >= counts_.size()) return before == 0 ? targets_[0] : targets_[before - 1];
  if (below == 0 || before == 0) return targets_[next];
  const double low = targets_[before - 1], high = targets_[next];
  const double count = counts_[next];
  const double at_low = std::min(quantile, (static_cast<double>(below) - 1) / last);
  double at_high = std::max(quantile, (static_cast<double>(below) + count - 1) / last);
  at_high = at_low + (at_high - at_low) / count;  // the first row with this target
  if (quantile >= at_high) return high;
  const double fraction = (quantile - at_low) / (at_high - at_low);
  if (fraction <= 0) return low;
  return fraction >= 1 ? high : low + fraction * (high - low);
}

[[gnu::cold]] void Machine::quantiles(const Inst& inst) {
  const Range& rows = ranges[operands<Op::Quantiles>(inst).rows];
  const Program& program = loaded_->program;
  const auto trees = program.sampled_trees();
  const auto leaves = program.sampled_leaves();
  const auto samples = program.sample_targets();
  const ScratchSlots::Slot slot(*pass_->slots);
  auto* const memory = reinterpret_cast<std::uint32_t*>(slot.memory());
  std::memset(memory, 0, TargetCounts::size(program.targets().size()) * sizeof *memory);
  TargetCounts counts(program.targets(), memory);
  for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
    const std::int32_t* const numbers = pass_->leaves + std::size_t{row} * trees.size();
    for_leaf_lists(trees, leaves, numbers, [&](std::uint32_t begin, std::uint32_t end) {
      counts.add(samples.subspan(begin, end - begin));
    });
    for (std::size_t i = 0; i < pass_->width; ++i) {
      const std::size_t to = row * pass_->width + i;
      const double quantile = counts.quantile(pass_->options->quantiles[i]);
      if (pass_->wide_values != nullptr)
        pass_->wide_values[to] = quantile;
      else
        pass_->values[to] = static_cast<float>(quantile);
    }
    for_leaf_lists(trees, leaves, numbers, [&](std::uint32_t begin, std::uint32_t end) {
      counts.remove(samples.subspan(begin, end - begin));
    });
  }
}

}  // namespace forestvm::host
