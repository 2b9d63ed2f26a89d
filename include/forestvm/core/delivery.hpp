// The ways in which walkers deliver the leaf that a walk reaches, on the host and on GPUs.
#pragma once

#include <cstdint>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

/// Names the accumulator that a leaf goes to by its kind, or LeafNumber if the number of the leaf is written
/// out.
enum class Delivery : std::uint8_t {
#define FVM_ACCUMULATOR_KIND(number, Name, text, Element, meaning) Name,
#include <forestvm/core/accumulator_kinds.def>
  LeafNumber,
};

/// Returns how walkers deliver leaves to accumulators of a kind.
FVM_HOST_DEVICE constexpr Delivery delivery_of(AccumulatorKind kind) {
  switch (kind) {
#define FVM_ACCUMULATOR_KIND(number, Name, text, Element, meaning) \
  case AccumulatorKind::Name:                                      \
    return Delivery::Name;
#include <forestvm/core/accumulator_kinds.def>
  }
  __builtin_unreachable();  // verified
}

}  // namespace forestvm
