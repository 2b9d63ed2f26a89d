// The scalar walker, one template for every layout, interleaving and way of ending. In: a task (trees x rows,
// where they lie). Out: leaves added to the accumulator, each row's in the order of its trees.
//
// Target is a tag type of the CPU target that instantiates it: code compiled for different CPUs must not
// share a symbol.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/interpret.hpp>

namespace forestvm::host {

/// What a walker is given: all of it verified.
struct WalkTask {
  const void* nodes;         ///< the group's first node
  const TreeDesc* trees;     ///< record of the group's first tree
  std::uint32_t first_tree;  ///< its number in the model
  Range tree_range;          ///< model trees
  Range row_range;           ///< rows of the call
  const float* rows;
  std::size_t row_stride;  ///< floats
  float* accumulator;      ///< of row 0
  std::size_t outputs;     ///< floats from one row's accumulator to the next
  std::uint32_t hops;      ///< WalkerDesc::hops
  WalkOrder order;
};

using WalkFunction = void (*)(const WalkTask&);

/// How a walk ends, as a template parameter: a fixed number of hops, or one of these.
inline constexpr int kUntilLeaf = -1;  ///< task.hops hops unchecked, then to a leaf
inline constexpr int kExactHops = -2;  ///< task.hops hops
inline constexpr unsigned kMaxFixedHops = 8;

template <class Target, class View, int Ending>
struct TileWalk {
  using Node = typename View::Node;

  /// Walks Trees x Rows pairs in lockstep.
  template <unsigned Trees, unsigned Rows>
  __attribute__((noinline)) static void tile(const WalkTask& task, std::uint32_t tree, std::uint32_t row) {
    const TreeDesc* trees = task.trees + (tree - task.first_tree);
    const Node* nodes[Trees];
    const float* x[Rows];
    std::uint32_t at[Trees][Rows] = {};
    for (unsigned t = 0; t < Trees; ++t)
      nodes[t] = static_cast<const Node*>(task.nodes) + trees[t].first_node;
    for (unsigned r = 0; r < Rows; ++r)
      x[r] = task.rows + (row + static_cast<std::size_t>(r)) * task.row_stride;

    if constexpr (Ending >= 0) {
#pragma GCC unroll 8
      for (int hop = 0; hop < Ending; ++hop) step<Trees, Rows>(nodes, x, at);
    } else {
      for (std::uint32_t hop = 0; hop < task.hops; ++hop) step<Trees, Rows>(nodes, x, at);
      if constexpr (Ending == kUntilLeaf)
        while (step_to_leaf<Trees, Rows>(nodes, x, at)) {
        }
    }

    for (unsigned t = 0; t < Trees; ++t)
      for (unsigned r = 0; r < Rows; ++r)
        task.accumulator[(row + static_cast<std::size_t>(r)) * task.outputs + trees[t].output] +=
            View::value(nodes[t], at[t][r]);
  }

 private:
  template <unsigned Trees, unsigned Rows>
  FVM_INLINE static void step(const Node* const* nodes, const float* const* x,
                              std::uint32_t (&at)[Trees][Rows]) {
    for (unsigned t = 0; t < Trees; ++t)
      for (unsigned r = 0; r < Rows; ++r) at[t][r] = View::next(nodes[t], at[t][r], x[r]);
  }

  /// One hop of every walk that has not arrived; false when all have.
  template <unsigned Trees, unsigned Rows>
  FVM_INLINE static bool step_to_leaf(const Node* const* nodes, const float* const* x,
                                      std::uint32_t (&at)[Trees][Rows]) {
    bool walking = false;
    for (unsigned t = 0; t < Trees; ++t)
      for (unsigned r = 0; r < Rows; ++r) {
        const bool leaf = View::is_leaf(nodes[t], at[t][r]);
        const std::uint32_t next = View::next(nodes[t], at[t][r], x[r]);
        at[t][r] = leaf ? at[t][r] : next;
        walking |= !leaf;
      }
    return walking;
  }
};

/// Calls visit<K>(i) for each K consecutive elements of a range, then <K/2>, … <1> for the rest.
template <unsigned K, class Visit>
FVM_INLINE void for_chunks(std::uint32_t begin, std::uint32_t end, const Visit& visit) {
  for (; end - begin >= K; begin += K) visit.template operator()<K>(begin);
  if constexpr (K > 1) for_chunks<K / 2>(begin, end, visit);
}

/// A walker that walks Trees x Rows pairs at a time.
template <class Target, class View, unsigned Trees, unsigned Rows, int Ending>
void walk(const WalkTask& task) {
  using Tiles = TileWalk<Target, View, Ending>;
  const Range& trees = task.tree_range;
  const Range& rows = task.row_range;
  if (task.order == WalkOrder::RowsOuter)
    for_chunks<Rows>(rows.begin, rows.end, [&]<unsigned R>(std::uint32_t row) {
      for_chunks<Trees>(trees.begin, trees.end,
                        [&]<unsigned T>(std::uint32_t tree) { Tiles::template tile<T, R>(task, tree, row); });
    });
  else
    for_chunks<Trees>(trees.begin, trees.end, [&]<unsigned T>(std::uint32_t tree) {
      for_chunks<Rows>(rows.begin, rows.end,
                       [&]<unsigned R>(std::uint32_t row) { Tiles::template tile<T, R>(task, tree, row); });
    });
}

}  // namespace forestvm::host
