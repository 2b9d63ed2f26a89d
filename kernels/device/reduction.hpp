// Reductions: the threads of a block together add the copies of an accumulator. In: a Cells object, whose
// first_copy(reduction, row, column) is the address of an element's first copy, and begin(reduction, row, column) what
// its sum begins with. Out: sums, which end(reduction, row, column, total) takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <forestvm/core/ranges.hpp>
#include <forestvm/core/sums.hpp>

#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// The elements to which the copies of an accumulator are added: `rows` rows of `width` elements.
struct Reduction {
  std::uint32_t to, from;           ///< Numbers of the accumulators.
  std::uint32_t first_copy, count;  ///< Number of the first copy, and number of copies.
  std::uint32_t first_row, rows, width;
  std::size_t copy_bytes;  ///< Bytes from a copy to the next.
  bool in_place;           ///< True if the elements are the first copy's.
};

/// Returns the number of iterations of a loop that made fewer copies than another one.
FVM_DEVICE_CALL std::uint32_t fewer_copies(std::uint32_t size, std::uint32_t step) {
  return iterations(size, step);
}

/// Returns the number of iterations of the loop that made the copies. It is `most` but for short ranges of trees, and
/// then takes no division.
FVM_DEVICE std::uint32_t copies_made(std::uint32_t size, std::uint32_t step, std::uint32_t most) {
  const std::uint64_t before_last = std::uint64_t{most - 1} * step;
  return size > before_last && size - before_last <= step ? most : fewer_copies(size, step);
}

/// Rows of elements.
struct Elements {
  std::uint32_t rows, width;
};

/// Calls visit(row, column) for elements first, first + step, first + 2 * step, ..., counted row by row. `all` has
/// members `rows` and `width`.
template <class All, class Visit>
FVM_DEVICE void for_elements(const All& all, std::uint32_t first, std::uint32_t step, const Visit& visit) {
  std::uint32_t row = first, column = 0, row_step = step, column_step = 0;
  if (all.width != 1) {
    row = first / all.width;
    column = first % all.width;
    row_step = step / all.width;
    column_step = step % all.width;
  }
  FVM_NO_UNROLL
  while (row < all.rows) {
    visit(row, column);
    row += row_step;
    column += column_step;
    if (column >= all.width) {
      column -= all.width;
      ++row;
    }
  }
}

/// The number of a thread among the threads that reduce together, and the number of these threads.
struct ReducingThread {
  std::uint32_t index, count;
};

/// Returns an element of a copy, by the element of the first copy.
template <class Element>
FVM_DEVICE const Element* copy_of(const Reduction& reduction, const Element* first, std::uint32_t copy) {
  return reinterpret_cast<const Element*>(reinterpret_cast<const std::byte*>(first) +
                                          copy * reduction.copy_bytes);
}

/// Adds the copies of each element in their order. Threads share elements and not rows, because there are
/// often fewer rows than threads.
template <class Element, class Cells>
FVM_DEVICE void reduce_in_order(const Reduction& reduction, const Cells& cells, ReducingThread thread) {
  for_elements(reduction, thread.index, thread.count, [&](std::uint32_t row, std::uint32_t column) {
    const Element* const first = cells.template first_copy<Element>(reduction, row, column);
    Element total = reduction.in_place && reduction.count == 0
                        ? Element{}
                        : cells.template begin<Element>(reduction, row, column);
    FVM_NO_UNROLL
    for (std::uint32_t copy = reduction.in_place ? 1 : 0; copy < reduction.count; ++copy)
      total.add(*copy_of(reduction, first, copy));
    cells.template end<Element>(reduction, row, column, total);
  });
}

/// Returns true if a warp for each element is faster than a thread for each. It compares the numbers of additions
/// that come one after the other, and counts a shuffle as an addition. All threads of the block must take part, so
/// that warps are whole.
template <class Element>
FVM_DEVICE bool adds_by_warps(const Reduction& reduction, bool any_order, std::uint32_t threads) {
  constexpr bool kExact = std::is_same_v<Element, Exact64Sum> || std::is_same_v<Element, Exact128Sum>;
  if (!(kExact || any_order) || reduction.rows >= threads || reduction.width >= threads) return false;
  const std::uint32_t elements = reduction.rows * reduction.width;
  if (elements >= threads) return false;
  const std::uint32_t lanes = Device::warp_size(), warps = (threads + lanes - 1) / lanes;
  std::uint32_t steps = (reduction.count + lanes - 1) / lanes;
  for (std::uint32_t by = lanes / 2; by != 0; by /= 2) ++steps;
  std::uint32_t additions = steps;  // of a warp that adds as many elements as any
  FVM_NO_UNROLL
  for (std::uint32_t left = elements; left > warps; left -= warps) additions += steps;
  return additions < reduction.count;
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
  for_elements(reduction, warp, warps, [&](std::uint32_t row, std::uint32_t column) {
    Element total{};
    const Element* const first = cells.template first_copy<Element>(reduction, row, column);
    FVM_NO_UNROLL
    for (std::uint32_t copy = lane; copy < reduction.count; copy += lanes)
      total.add(*copy_of(reduction, first, copy));
    for (std::uint32_t by = most / 2; by != 0; by /= 2) {
      const bool there = lane + by < lanes;
      const Element more = Device::shuffle_down(total, there ? by : 0, barrier);
      if (there) total.add(more);
    }
    if (lane != 0) return;
    if (!reduction.in_place) total.add(cells.template begin<Element>(reduction, row, column));
    cells.template end<Element>(reduction, row, column, total);
  });
}

}  // namespace forestvm::kernels
