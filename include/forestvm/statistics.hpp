// Statistics of a forest: `forestvm inspect` prints them, and choosing a schedule starts from them.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/model.hpp>

namespace forestvm {

struct ForestStatistics {
  std::uint64_t nodes = 0;  ///< splits and leaves that a walk can reach
  std::uint64_t leaves = 0;
  std::uint64_t category_splits = 0;
  std::uint32_t min_depth = 0;  ///< depth of a tree: hops from the root to its deepest leaf
  std::uint32_t max_depth = 0;
  double mean_depth = 0;
  std::uint32_t features_used = 0;
  std::uint64_t thresholds = 0;     ///< distinct (feature, threshold) pairs
  std::uint64_t category_sets = 0;  ///< distinct (feature, set of categories) pairs
};

}  // namespace forestvm
