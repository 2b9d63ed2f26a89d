// Reductions: the threads of a block together add the copies of an accumulator. In: the elements and their copies,
// to which a Cells object gives references: copied(reduction, copy, element) and sum(reduction, element). Out: the
// sums.
#pragma once

#include <cstdint>
#include <type_traits>

#include <forestvm/core/sums.hpp>

#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// The elements to which the copies of an accumulator are added.
struct Reduction {
  std::uint32_t to, from;           ///< Numbers of the accumulators.
  std::uint32_t first_copy, count;  ///< Number of the first copy, and number of copies.
  std::uint32_t first_row, width;
  std::uint64_t elements;
  bool in_place;  ///< True if the elements are the first copy's.

  FVM_DEVICE std::uint32_t row(std::uint64_t element) const {
    return first_row + static_cast<std::uint32_t>(element / width);
  }
  FVM_DEVICE std::uint32_t column(std::uint64_t element) const {
    return static_cast<std::uint32_t>(element % width);
  }
};

/// The number of a thread among the threads that reduce together, and the number of these threads.
struct ReducingThread {
  std::uint32_t index, count;
};

/// Adds the copies of each element in their order. Threads share elements and not rows, because there are
/// often fewer rows than threads.
template <class Element, class Cells>
FVM_DEVICE void reduce_in_order(const Reduction& reduction, const Cells& cells, ReducingThread thread) {
  FVM_NO_UNROLL
  for (std::uint64_t i = thread.index; i < reduction.elements; i += thread.count) {
    Element& sum = cells.template sum<Element>(reduction, i);
    Element total = reduction.in_place && reduction.count == 0 ? Element{} : sum;
    FVM_NO_UNROLL
    for (std::uint32_t copy = reduction.in_place ? 1 : 0; copy < reduction.count; ++copy)
      total.add(cells.template copied<Element>(reduction, copy, i));
    sum = total;
  }
}

/// Returns true if a warp for each element is faster than a thread for each. It compares the numbers of additions
/// that come one after the other, and counts a shuffle as an addition. All threads of the block must take part, so
/// that warps are whole.
template <class Element>
FVM_DEVICE bool adds_by_warps(const Reduction& reduction, bool any_order, std::uint32_t threads) {
  constexpr bool kExact = std::is_same_v<Element, Exact64Sum> || std::is_same_v<Element, Exact128Sum>;
  if (!(kExact || any_order) || reduction.elements >= threads) return false;
  const std::uint32_t lanes = Device::warp_size(), warps = (threads + lanes - 1) / lanes;
  std::uint32_t steps = (reduction.count + lanes - 1) / lanes;
  FVM_NO_UNROLL
  for (std::uint32_t by = lanes / 2; by != 0; by /= 2) ++steps;
  return (reduction.elements + warps - 1) / warps * steps < reduction.count;
}

/// Adds the copies of each element by a warp: lane i adds copies i, i + lanes, i + 2 * lanes, ...; then half of the
/// lanes add their sums to the sums of the other half, until one sum is left. `barrier` is the number of the
/// shuffles.
template <class Element, class Cells>
FVM_DEVICE void reduce_by_warps(const Reduction& reduction, const Cells& cells, ReducingThread thread,
                                std::uint32_t barrier) {
  const std::uint32_t most = Device::warp_size(), warps = (thread.count + most - 1) / most;
  const std::uint32_t warp = thread.index / most, lane = thread.index % most;
  const std::uint32_t lanes = thread.count - warp * most < most ? thread.count - warp * most : most;
  FVM_NO_UNROLL
  for (std::uint64_t i = warp; i < reduction.elements; i += warps) {
    Element total{};
    FVM_NO_UNROLL
    for (std::uint32_t copy = lane; copy < reduction.count; copy += lanes)
      total.add(cells.template copied<Element>(reduction, copy, i));
    for (std::uint32_t by = most / 2; by != 0; by /= 2) {
      const bool there = lane + by < lanes;
      const Element more = Device::shuffle_down(total, there ? by : 0, barrier);
      if (there) total.add(more);
    }
    if (lane != 0) continue;
    Element& sum = cells.template sum<Element>(reduction, i);
    if (!reduction.in_place) total.add(sum);
    sum = total;
  }
}

}  // namespace forestvm::kernels
