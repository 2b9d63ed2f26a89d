// The walker, one template for every layout, interleaving and way of ending. In: a task (trees x rows, where
// they lie). Out: leaves added to the accumulator, each row's in the order of its trees; or stored, each
// tree's by its number.
//
// Target is the type of the CPU target that instantiates it: it brings the compare of a tile's nodes, and
// keeps code compiled for different CPUs apart, which must not share a symbol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/core/sums.hpp>

#include "vm/host/atomics.hpp"

namespace forestvm::host {

/// What becomes of a leaf.
enum class Delivery : std::uint8_t {
#define FVM_ACCUMULATOR_KIND(Name, text, Element, meaning) Name,
#include <forestvm/core/accumulator_kinds.def>
  LeafNumber,
};

/// What a walker is given: all of it verified.
struct WalkTask {
  GroupData group;
  std::uint32_t first_tree;      ///< the group's first, as the program counts trees
  const std::uint32_t* numbers;  ///< of the group's leaves
  const double* wide_leaves;     ///< their outputs in float64; null if the program has none
  Range tree_range;
  Range row_range;  ///< rows of the call
  const float* rows;
  std::size_t row_stride;     ///< floats
  const std::uint8_t* codes;  ///< of row 0, see core/encoder.hpp
  std::size_t columns;        ///< of codes
  std::uint32_t row_count;    ///< rows of the call, all of which have codes
  std::byte* out;             ///< of row 0: sums; per-tree values; int32 leaf numbers
  std::size_t width;          ///< elements of one row of `out`
  SumScale scale;
  std::uint32_t hops;  ///< WalkerDesc::hops
  WalkOrder order;
  Delivery delivery;
  bool atomic;
  bool exact;  ///< the walks end after `hops` hops
};

using WalkFunction = void (*)(const WalkTask&);

/// How a walk ends, as a template parameter: a fixed number of hops, or one of these.
inline constexpr int kUntilLeaf = -1;  ///< task.hops hops unchecked, then to a leaf
inline constexpr int kExactHops = -2;  ///< task.hops hops
inline constexpr unsigned kMaxFixedHops = 8;

/// Leaves of Trees x Rows pairs, on their way to anything but plain float32 sums.
struct Leaves {
  std::uint32_t tree, row, trees, rows;
  const float* values;  ///< by tree, then row
  const std::uint64_t* numbers_at;
};

template <class Target>
struct Deliver {
  /// Adds get(i), i counting the leaves.
  template <class Sum, class Get>
  static void add(const WalkTask& task, const Leaves& leaves, const Get& get) {
    const TreeDesc* trees = task.group.trees + (leaves.tree - task.first_tree);
    Sum* sums = reinterpret_cast<Sum*>(task.out);
    for (std::uint32_t t = 0; t < leaves.trees; ++t)
      for (std::uint32_t r = 0; r < leaves.rows; ++r) {
        Sum& sum = sums[(leaves.row + std::size_t{r}) * task.width + trees[t].output];
        const Sum leaf = Sum::of(get(t * leaves.rows + r), task.scale);
        if (task.atomic)
          sum.template add_shared<Atomics>(leaf);
        else
          sum.add(leaf);
      }
  }

  /// Adds the leaves in the widest type in which the program has them.
  template <class Sum>
  static void add(const WalkTask& task, const Leaves& leaves) {
    if (task.wide_leaves != nullptr) return add<Sum>(task, leaves, wide(task, leaves));
    add<Sum>(task, leaves, narrow(leaves));
  }

  static auto narrow(const Leaves& leaves) {
    return [&leaves](std::uint32_t i) { return leaves.values[i]; };
  }
  static auto wide(const WalkTask& task, const Leaves& leaves) {
    return [&](std::uint32_t i) { return task.wide_leaves[leaves.numbers_at[i]]; };
  }

  /// Each tree has a place of its own.
  template <class T, class Get>
  static void put(const WalkTask& task, const Leaves& leaves, Get get) {
    const TreeDesc* trees = task.group.trees + (leaves.tree - task.first_tree);
    T* out = reinterpret_cast<T*>(task.out);
    for (std::uint32_t t = 0; t < leaves.trees; ++t)
      for (std::uint32_t r = 0; r < leaves.rows; ++r)
        out[(leaves.row + std::size_t{r}) * task.width + trees[t].number] = get(t * leaves.rows + r);
  }

  __attribute__((noinline)) static void run(const WalkTask& task, const Leaves& leaves) {
    switch (task.delivery) {
      case Delivery::F32:
        return add<F32Sum>(task, leaves, narrow(leaves));
      case Delivery::F64:
        return add<F64Sum>(task, leaves);
      case Delivery::Exact64:
        return add<Exact64Sum>(task, leaves);
      case Delivery::Exact128:
        return add<Exact128Sum>(task, leaves);
      case Delivery::PerTree:
        return put<float>(task, leaves, narrow(leaves));
      case Delivery::PerTree64:
        return put<double>(task, leaves, wide(task, leaves));
      case Delivery::LeafNumber:
        return put<std::uint32_t>(task, leaves,
                                  [&](std::uint32_t i) { return task.numbers[leaves.numbers_at[i]]; });
    }
  }
};

/// What View::next reads of a row: its values, or its codes.
template <class View>
FVM_INLINE auto row_of(const WalkTask& task, std::size_t row) {
  if constexpr (kTakesCodes<View>)
    return task.codes + code_offset(row, task.columns);
  else
    return task.rows + row * task.row_stride;
}

template <class Target, class View, int Ending>
struct TileWalk {
  using Tree = typename View::Tree;
  using Row = decltype(row_of<View>(std::declval<WalkTask>(), 0));

  /// Walks Trees x Rows pairs in lockstep.
  template <unsigned Trees, unsigned Rows>
  __attribute__((noinline)) static void tile(const WalkTask& task, std::uint32_t tree, std::uint32_t row) {
    Tree trees[Trees];
    Row x[Rows];
    std::uint32_t at[Trees][Rows] = {};
    for (unsigned t = 0; t < Trees; ++t) trees[t] = View::tree(task.group, tree - task.first_tree + t);
    for (unsigned r = 0; r < Rows; ++r) x[r] = row_of<View>(task, row + static_cast<std::size_t>(r));

    if constexpr (Ending >= 0) {
#pragma GCC unroll 8
      for (int hop = 0; hop < Ending; ++hop) step<Trees, Rows>(trees, x, at);
    } else {
      for (std::uint32_t hop = 0; hop < task.hops; ++hop) step<Trees, Rows>(trees, x, at);
      if constexpr (Ending == kUntilLeaf)
        while (step_to_leaf<Trees, Rows>(trees, x, at)) {
        }
    }

    const TreeDesc* descs = task.group.trees + (tree - task.first_tree);
    if (task.delivery == Delivery::F32 && !task.atomic) [[likely]] {
      float* sums = reinterpret_cast<float*>(task.out);
      for (unsigned t = 0; t < Trees; ++t)
        for (unsigned r = 0; r < Rows; ++r)
          sums[(row + static_cast<std::size_t>(r)) * task.width + descs[t].output] +=
              View::value(trees[t], at[t][r]);
      return;
    }
    float values[Trees * Rows];
    std::uint64_t numbers_at[Trees * Rows];
    for (unsigned t = 0; t < Trees; ++t)
      for (unsigned r = 0; r < Rows; ++r) {
        values[t * Rows + r] = View::value(trees[t], at[t][r]);
        numbers_at[t * Rows + r] = View::number_at(trees[t], descs[t], at[t][r]);
      }
    Deliver<Target>::run(task, {tree, row, Trees, Rows, values, numbers_at});
  }

 private:
  template <unsigned Trees, unsigned Rows>
  FVM_INLINE static void step(const Tree* trees, const Row* x, std::uint32_t (&at)[Trees][Rows]) {
    for (unsigned t = 0; t < Trees; ++t)
      for (unsigned r = 0; r < Rows; ++r) at[t][r] = View::template next<Target>(trees[t], at[t][r], x[r]);
  }

  /// One hop of every walk that has not arrived; false when all have.
  template <unsigned Trees, unsigned Rows>
  FVM_INLINE static bool step_to_leaf(const Tree* trees, const Row* x, std::uint32_t (&at)[Trees][Rows]) {
    bool walking = false;
    for (unsigned t = 0; t < Trees; ++t)
      for (unsigned r = 0; r < Rows; ++r) {
        const bool leaf = View::is_leaf(trees[t], at[t][r]);
        const std::uint32_t next = View::template next<Target>(trees[t], at[t][r], x[r]);
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
