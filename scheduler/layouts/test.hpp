// A split's test as the walkers make it.
#pragma once

#include <cstdint>

#include <forestvm/model.hpp>

namespace forestvm::scheduler {

struct Test {
  float threshold = 0;
  std::uint32_t feature = 0;         ///< feature word
  const CategorySet* set = nullptr;  ///< of a categorical split, instead of a threshold: codes alone test it
};

}  // namespace forestvm::scheduler
