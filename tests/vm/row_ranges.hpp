// Ranges of rows for tests of encoders, which must write the codes of these rows and no others.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/core/ranges.hpp>

namespace forestvm::test {

/// Returns ranges of `count` rows (at least 200): all, none, one, and ranges that begin and end inside, at
/// and beyond blocks of codes.
inline std::vector<Range> row_ranges(std::uint32_t count) {
  return {{0, count}, {5, 5},  {0, 1},   {3, 4},  {70, 79},   {0, 64},
          {64, 128},  {0, 65}, {63, 65}, {3, 70}, {130, 200}, {130, count - 1}};
}

}  // namespace forestvm::test
