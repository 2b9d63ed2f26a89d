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
  /// Whether a row's outputs begin, and end, with these trees. If they do not, whole lines alone are written: the task
  /// before wrote the numbers that come before the first one, and the task after this one, which begins with its last
  /// kTreeRows trees, writes those that come after the last. Then `trees` is a multiple of kTreeRows.
  bool begins, ends;
};

using StoreTreesFunction = void (*)(const TreeRowsTask&);

/// Does the task by copies of numbers, for targets without vectors of whole lines.
void copy_tree_rows(const TreeRowsTask& task);

template <class Target>
void store_trees(const TreeRowsTask& task) {
  if constexpr (requires { Target::store_lines(task); })
    if (reinterpret_cast<std::uintptr_t>(task.to) % alignof(float) == 0) return Target::store_lines(task);
  copy_tree_rows(task);  // there, or where a number can lie in two lines
}

}  // namespace forestvm::host
