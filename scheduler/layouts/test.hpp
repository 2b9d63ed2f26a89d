// A split's test as the walkers make it.
#pragma once

#include <cstdint>

namespace forestvm::scheduler {

struct Test {
  float threshold = 0;
  std::uint32_t feature = 0;  ///< feature word
};

}  // namespace forestvm::scheduler
