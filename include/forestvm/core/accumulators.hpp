// Lays accumulators out in the memory of a call, and computes how much of it they take. In: the records of a
// program's accumulators. Shared by host and device code.
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/platform.hpp>
#include <forestvm/core/sums.hpp>

namespace forestvm {

/// Returns the number of elements of a row: one for each output, or for each tree.
FVM_HOST_DEVICE constexpr std::uint32_t accumulator_width(AccumulatorKind kind, std::uint32_t outputs,
                                                          std::uint32_t trees) {
  return is_per_tree(kind) ? trees : outputs;
}

/// Returns the bytes that accumulator `index` takes for each row, in all of its copies; 0 if it lies in the
/// memory of another.
FVM_HOST_DEVICE constexpr std::uint64_t accumulator_bytes(const AccumulatorDesc* accumulators,
                                                          std::uint32_t index, std::uint32_t outputs,
                                                          std::uint32_t trees) {
  const AccumulatorDesc& desc = accumulators[index];
  if (desc.stored_in != index) return 0;
  return std::uint64_t{desc.copies} * accumulator_width(desc.kind, outputs, trees) * element_size(desc.kind);
}

/// The accumulator whose memory another one uses, which may be itself.
struct AccumulatorStorage {
  std::uint32_t index;
  /// Distance of two copies of the other accumulator, in copies of accumulator `index`.
  std::uint32_t copy_stride;
};

/// Returns the storage of accumulator `index` of a verified program.
FVM_HOST_DEVICE constexpr AccumulatorStorage accumulator_storage(const AccumulatorDesc* accumulators,
                                                                 std::uint32_t index) {
  AccumulatorStorage storage{index, 1};
  while (accumulators[storage.index].stored_in != storage.index) {
    storage.index = accumulators[storage.index].stored_in;
    storage.copy_stride *= accumulators[storage.index].iterations;
  }
  return storage;
}

}  // namespace forestvm
