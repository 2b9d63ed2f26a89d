// The unit in which scratch memory is counted.
#pragma once

#include <cstddef>

namespace forestvm::host {

/// A cache line, in which scratch memory is counted.
struct alignas(64) Line {
  std::byte bytes[64];
};

/// Rounds bytes up to whole lines, so that each part of the scratch memory begins on a line of its own.
constexpr std::size_t whole_lines(std::size_t bytes) {
  return (bytes + sizeof(Line) - 1) / sizeof(Line) * sizeof(Line);
}

}  // namespace forestvm::host
