// See walk_features.hpp.
#include "scheduler/choose/walk_features.hpp"

#include <algorithm>

namespace forestvm::scheduler {

WalkFeatures walk_features(const ForestFacts& facts, const WalkCall& call, const WalkChoice& walk) {
  return {
#define FVM_WALK_FEATURE(name, value) static_cast<float>(value),
#include "scheduler/choose/walk_features.def"
  };
}

}  // namespace forestvm::scheduler
