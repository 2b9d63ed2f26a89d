// The numeric contract of a program: which bits a prediction promises.
#pragma once

#include <cstdint>

namespace forestvm {

/// The contracts, one for each row of contracts.def.
enum class Contract : std::uint8_t {
#define FVM_CONTRACT(number, Name, text, meaning) Name = number,
#include <forestvm/core/contracts.def>
};

}  // namespace forestvm
