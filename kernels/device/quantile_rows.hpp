// Writes quantiles of the targets of the training rows that share leaves with a row, a thread for each row: it counts
// them in global memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/target_quantile.hpp>

#include "kernels/device/kind_rows.hpp"
#include "kernels/link/kind_tables.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

template <class Value>
FVM_DEVICE void store_quantiles(const Launch& launch, std::uint32_t row, Value* to) {
  const KindTables& tables = *launch.program.kinds;
  const LaunchPass& pass = launch.pass;
  const std::uint32_t size = tables.target_count, numbers = size + target_blocks(size);
  const ThreadNumbers<std::uint32_t> counts{reinterpret_cast<std::uint32_t*>(pass.workspace) + row,
                                            pass.row_count};
  const ThreadNumbers<std::uint32_t> blocks{&counts[size], pass.row_count};
  FVM_NO_UNROLL
  for (std::uint32_t i = 0; i < numbers; ++i) counts[i] = 0;
  std::uint64_t total = 0;
  const std::int32_t* const leaves = pass.leaves + std::size_t{row} * launch.program.num_trees;
  FVM_NO_UNROLL
  for (std::uint32_t t = 0; t < launch.program.num_trees; ++t) {
    const LeafList list = leaf_list(tables.sampled_trees[t], tables.sampled_leaves, leaves[t]);
    FVM_NO_UNROLL
    for (std::uint32_t i = list.begin; i < list.end; ++i) {
      const std::uint32_t target = tables.sample_targets[i];
      ++counts[target];
      ++blocks[target / kTargetBlock];
    }
    total += list.end - list.begin;
  }
  to += std::size_t{row} * pass.value_width;
  FVM_NO_UNROLL
  for (std::uint32_t i = 0; i < pass.value_width; ++i)
    to[i] = static_cast<Value>(target_quantile(pass.base[i], total, counts, blocks, tables.targets, size));
}

}  // namespace forestvm::kernels
