// Computes the memory that accumulators take, from their records. For the compiler and the verifier: other readers of a
// program find it in its CodeMap.
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/sums.hpp>

namespace forestvm {

/// Returns the number of elements of a row: one for each output, or for each tree.
constexpr std::uint32_t accumulator_width(AccumulatorKind kind, std::uint32_t outputs, std::uint32_t trees) {
  return is_per_tree(kind) ? trees : outputs;
}

/// Returns the bytes that accumulator `index` takes for each row, in all of its copies; 0 if it lies in the
/// memory of another.
constexpr std::uint64_t accumulator_bytes(const AccumulatorDesc* accumulators, std::uint32_t index,
                                          std::uint32_t outputs, std::uint32_t trees) {
  const AccumulatorDesc& desc = accumulators[index];
  if (desc.stored_in != index) return 0;
  return std::uint64_t{desc.copies} * accumulator_width(desc.kind, outputs, trees) * element_size(desc.kind);
}

}  // namespace forestvm
