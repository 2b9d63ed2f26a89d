// A split's test as the walkers make it.
#pragma once

#include <cstdint>

#include <forestvm/model.hpp>

namespace forestvm::scheduler {

struct Test {
  float threshold = 0;
  std::uint32_t feature = 0;  ///< feature word: the feature's number and kMissingLeft
  /// Set of a categorical split, which has no threshold and is tested by codes alone; null for other splits.
  const CategorySet* set = nullptr;
};

}  // namespace forestvm::scheduler
