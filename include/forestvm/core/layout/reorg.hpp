// The reorg layout: the array layout with the trees of a group interleaved node by node, so that threads (or
// lanes) that walk different trees read neighbouring nodes. All trees are padded to the deepest one. RAPIDS
// FIL and Tahoe use it (SilvanForge, section 6).
#pragma once

#include <forestvm/core/layout/level_order.hpp>

namespace forestvm {

using ReorgView = LevelOrderView<TreesInterleaved>;
template <unsigned Width>
using ReorgTilesView = LevelOrderTilesView<Width, TreesInterleaved>;

}  // namespace forestvm
