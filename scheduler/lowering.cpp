// See lowering.hpp.
#include "scheduler/lowering.hpp"

#include <algorithm>

#include <forestvm/core/layouts.hpp>

namespace forestvm::scheduler {

bool Lowering::encodes() const {
  return std::any_of(forest.groups.begin(), forest.groups.end(), [this](const TreeGroup& group) {
    bool tests = false;
    for (std::uint32_t t = group.tree_begin; takes_codes(group.layout) && t < group.tree_end; ++t)
      tests = tests || forest.tree(group.tiling, t).depth != 0;
    return tests;
  });
}

}  // namespace forestvm::scheduler
