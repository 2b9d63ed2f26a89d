// Names the two things that a loop of a schedule, or a range of a program, steps through.
#pragma once

#include <cstdint>

namespace forestvm {

enum class Axis : std::uint8_t { Rows, Trees };

}  // namespace forestvm
