// A split's test as the walkers make it.
#pragma once

#include <cstdint>

#include <forestvm/model.hpp>

namespace forestvm::scheduler {

struct Test {
  float threshold = 0;
  std::uint32_t feature = 0;  ///< feature word
  const CategorySet* set =
      nullptr;  ///< a categorical split's, which has no threshold and is tested by codes alone
};

}  // namespace forestvm::scheduler
