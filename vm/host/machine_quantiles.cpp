// The instruction `quantiles`: the leaves that a row reaches -> quantiles of the targets of their training rows.
#include <cstring>

#include <forestvm/core/target_quantile.hpp>

#include "vm/host/leaf_lists.hpp"
#include "vm/host/machine.hpp"
#include "vm/host/target_counts.hpp"

namespace forestvm::host {

[[gnu::cold]] double TargetCounts::quantile(double quantile) const {
  return target_quantile(quantile, total_, counts_, blocks_, targets_.data(),
                         static_cast<std::uint32_t>(targets_.size()));
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
    const std::int32_t* const numbers = pass_->leaves + row * kept_numbers(trees.size());
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
