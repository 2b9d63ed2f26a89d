// The array layout: trees in level order, one after the other. It is Treebeard's array representation (SilvanForge,
// section 6).
#pragma once

#include <forestvm/core/layout/level_order.hpp>

namespace forestvm {

using ArrayView = LevelOrderView<TreesInSequence>;
template <unsigned Width>
using ArrayTilesView = LevelOrderTilesView<Width, TreesInSequence>;

}  // namespace forestvm
