// Nests mapped to a GPU that several tests compile.
#pragma once

#include <string>

namespace forestvm::kernels {

/// Maps blocks of 64 rows to the grid, a thread to each row: one launch.
inline const std::string kRowsInBlocks =
    "tile(batch, b0, b1, 64); reorder(b0, b1, tree); gpuDimension(b0, grid.x); gpuDimension(b1, block.x)";

/// Maps blocks of rows and pairs of trees to the grid: one launch makes sums in global memory, and the next one
/// reduces them, because blocks of grid.z do not join as those of grid.y.
inline std::string trees_in_grid(unsigned rows) {
  return "tile(batch, b0, b1, " + std::to_string(rows) +
         "); tile(tree, t0, t1, 2); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
         "gpuDimension(t0, grid.z); gpuDimension(b1, block.x)";
}
inline const std::string kTreesInGrid = trees_in_grid(8);

}  // namespace forestvm::kernels
