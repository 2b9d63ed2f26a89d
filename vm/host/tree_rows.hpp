// The outputs of trees for some rows, which lie tree after tree, written row by row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forestvm::host {

/// The rows whose outputs are written together: those of a tree for them fill a cache line.
inline constexpr std::size_t kTreeRows = 16;

struct TreeRowsTask {
  const float* leaves;  ///< The outputs of the first tree for kTreeRows rows.
  std::size_t stride;   ///< Numbers from one tree to the next.
  std::size_t trees;    ///< At least kTreeRows.
  float* to;            ///< Receives the outputs of the first row.
  std::size_t width;    ///< Numbers from one row to the next.
  bool is_large;        ///< Whether lines go to memory past the caches: see large_results.hpp.
};

/// Returns false, and does nothing, if the target has no vectors of whole lines, or a number can lie in two lines.
using StoreTreesFunction = bool (*)(const TreeRowsTask&);

template <class Target>
bool store_trees(const TreeRowsTask& task) {
  if constexpr (requires { Target::store_lines(task); }) {
    if (reinterpret_cast<std::uintptr_t>(task.to) % alignof(float) != 0) return false;
    Target::store_lines(task);
    return true;
  }
  return false;
}

}  // namespace forestvm::host
