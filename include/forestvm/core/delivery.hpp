// The ways in which walkers deliver the leaf that a walk reaches, on the host and on GPUs.
#pragma once

#include <cstdint>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

/// Names the accumulator that a leaf goes to by its kind, or LeafNumber if the number of the leaf is written
/// out.
enum class Delivery : std::uint8_t {
#define FVM_ACCUMULATOR_KIND(number, Name, text, Element, meaning) Name = number,
#include <forestvm/core/accumulator_kinds.def>
  LeafNumber,
};

/// Returns how walkers deliver leaves to accumulators of a kind.
FVM_HOST_DEVICE constexpr Delivery delivery_of(AccumulatorKind kind) {
  return static_cast<Delivery>(kind);  // both have the numbers of the rows
}

}  // namespace forestvm
