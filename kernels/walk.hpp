// The walk of one thread: some rows through some trees, a few of both in lockstep. It knows nothing of blocks
// and barriers. In: where the nodes, the rows and the sums lie. Out: each row's leaves, added in the order of
// the trees; or stored, each tree's by its number.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>

#include "kernels/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

struct DeviceAtomics {
  template <class T>
  FVM_DEVICE static T fetch_add(T& sum, T more) {
    return Device::fetch_add(sum, more);
  }
};

/// Rows that a thread takes: count of them, a stride apart.
struct ThreadRows {
  std::uint32_t first, stride, count;

  FVM_DEVICE std::uint32_t operator[](std::uint32_t i) const { return first + i * stride; }
};

/// Rows as the call has them.
struct GlobalRows {
  const float* rows;
  std::size_t row_stride;

  FVM_DEVICE const float* at(std::uint32_t row) const { return rows + row * row_stride; }
};

/// Rows in shared memory, value by value: neighbouring threads, which take neighbouring rows, read
/// neighbouring words whatever features their nodes test.
struct StagedRows {
  struct Row {
    const float* values;
    std::uint32_t stride;

    FVM_DEVICE float operator[](std::uint32_t feature) const { return values[std::size_t{feature} * stride]; }
  };

  const float* values;
  std::uint32_t first, stride;

  FVM_DEVICE Row at(std::uint32_t row) const { return {values + (row - first), stride}; }
};

/// Rank codes of rows.
struct CodedTiles {
  const std::uint8_t* codes;
  std::size_t columns;

  FVM_DEVICE const std::uint8_t* at(std::uint32_t row) const { return codes + code_offset(row, columns); }
};

/// What becomes of a leaf.
enum class Delivery : std::uint8_t {
#define FVM_ACCUMULATOR_KIND(Name, text, Element, meaning) Name,
#include <forestvm/core/accumulator_kinds.def>
  LeafNumber,
};

/// What a thread walks.
struct ThreadWalk {
  GroupData group;           ///< staged, if its trees are
  const GroupData* home;     ///< the same in global memory, where leaves are numbered
  std::uint32_t first_tree;  ///< of the group's tree records
  const LaunchWalker* walker;
  Range trees;
  ThreadRows rows;
  std::byte* out;         ///< of the row `out_row`
  std::uint32_t out_row;  ///< rows of `out` are counted from here
  std::uint32_t width;    ///< elements of a row of `out`
  SumScale scale;
  Delivery delivery;
};

/// Where one leaf goes.
struct Arrival {
  std::uint32_t row;
  const TreeDesc* tree;
  float value;
  std::uint64_t number_at;  ///< of the leaf, among the group's
};

template <class Sum>
FVM_DEVICE void add_leaf(const ThreadWalk& walk, const Arrival& leaf, std::size_t at) {
  Sum& sum = reinterpret_cast<Sum*>(walk.out)[at + leaf.tree->output];
  const double* const wide = walk.walker->wide_leaves;
  const Sum more =
      wide != nullptr ? Sum::of(wide[leaf.number_at], walk.scale) : Sum::of(leaf.value, walk.scale);
  if (walk.walker->atomic)
    sum.template add_shared<DeviceAtomics>(more);
  else
    sum.add(more);
}

/// Any leaf but those of float32 sums that no other thread adds to.
FVM_DEVICE_CALL void deliver(const ThreadWalk& walk, const Arrival& leaf) {
  const std::size_t at = std::size_t{leaf.row - walk.out_row} * walk.width;
  switch (walk.delivery) {
    case Delivery::F32:
      return add_leaf<F32Sum>(walk, leaf, at);
    case Delivery::F64:
      return add_leaf<F64Sum>(walk, leaf, at);
    case Delivery::Exact64:
      return add_leaf<Exact64Sum>(walk, leaf, at);
    case Delivery::Exact128:
      return add_leaf<Exact128Sum>(walk, leaf, at);
    case Delivery::PerTree:
      reinterpret_cast<float*>(walk.out)[at + leaf.tree->number] = leaf.value;
      return;
    case Delivery::PerTree64:
      reinterpret_cast<double*>(walk.out)[at + leaf.tree->number] = walk.walker->wide_leaves[leaf.number_at];
      return;
    case Delivery::LeafNumber:
      reinterpret_cast<std::uint32_t*>(walk.out)[at + leaf.tree->number] =
          walk.walker->numbers[leaf.number_at];
      return;
  }
}

/// The float32 sum of a row that leaves are added to, as long as they go to the same output.
struct RunningSum {
  float* at = nullptr;
  float sum = 0;

  FVM_DEVICE void add(const ThreadWalk& walk, const Arrival& leaf) {
    float* const to = reinterpret_cast<float*>(walk.out) + std::size_t{leaf.row - walk.out_row} * walk.width +
                      leaf.tree->output;
    if (to != at) {
      finish();
      at = to;
      sum = *to;
    }
    sum += leaf.value;
  }
  FVM_DEVICE void finish() const {
    if (at != nullptr) *at = sum;
  }
};

template <class View, class Rows>
struct WalkLoops {
  using Tree = typename View::Tree;
  using Row = decltype(Rows{}.at(0));

  const ThreadWalk& walk;
  const Rows& rows;

  /// The thread's rows through the trees, T trees and R rows at a time as far as there are so many.
  template <unsigned T, unsigned R>
  FVM_DEVICE void run() const {
    std::uint32_t row = 0;
    if (walk.walker->order == WalkOrder::RowsOuter) {
      for (; walk.rows.count - row >= R; row += R) through_trees<T, R>(row);
      for (; R > 1 && row < walk.rows.count; ++row) through_trees<T, 1>(row);
    } else {
      std::uint32_t tree = walk.trees.begin;
      for (; walk.trees.end - tree >= T; tree += T) through_rows<T, R>(tree);
      for (; T > 1 && tree < walk.trees.end; ++tree) through_rows<1, R>(tree);
    }
  }

 private:
  template <unsigned T, unsigned R>
  FVM_DEVICE void through_trees(std::uint32_t row) const {
    RunningSum running[R];
    std::uint32_t tree = walk.trees.begin;
    for (; walk.trees.end - tree >= T; tree += T) tile<T, R>(tree, row, running);
    for (; T > 1 && tree < walk.trees.end; ++tree) tile<1, R>(tree, row, running);
    for (unsigned r = 0; r < R; ++r) running[r].finish();
  }

  template <unsigned T, unsigned R>
  FVM_DEVICE void through_rows(std::uint32_t tree) const {
    std::uint32_t row = 0;
    for (; walk.rows.count - row >= R; row += R) alone<T, R>(tree, row);
    for (; R > 1 && row < walk.rows.count; ++row) alone<T, 1>(tree, row);
  }

  template <unsigned T, unsigned R>
  FVM_DEVICE void alone(std::uint32_t tree, std::uint32_t row) const {
    RunningSum running[R];
    tile<T, R>(tree, row, running);
    for (unsigned r = 0; r < R; ++r) running[r].finish();
  }

  /// T x R walks in lockstep.
  template <unsigned T, unsigned R>
  FVM_DEVICE void tile(std::uint32_t tree, std::uint32_t row, RunningSum (&running)[R]) const {
    Tree trees[T];
    std::uint32_t at[T][R] = {};
    Row x[R];
    for (unsigned t = 0; t < T; ++t) trees[t] = View::tree(walk.group, tree - walk.first_tree + t);
    for (unsigned r = 0; r < R; ++r) x[r] = rows.at(walk.rows[row + r]);
    for (std::uint32_t hop = 0; hop < walk.walker->hops; ++hop)
      for (unsigned t = 0; t < T; ++t)
        for (unsigned r = 0; r < R; ++r)
          at[t][r] = View::template next<ScalarCompare>(trees[t], at[t][r], x[r]);
    if (walk.walker->end == WalkEnd::UntilLeaf)
      for (bool walking = true; walking;) {
        walking = false;
        for (unsigned t = 0; t < T; ++t)
          for (unsigned r = 0; r < R; ++r) {
            if (View::is_leaf(trees[t], at[t][r])) continue;
            at[t][r] = View::template next<ScalarCompare>(trees[t], at[t][r], x[r]);
            walking = true;
          }
      }
    const TreeDesc* const descs = walk.group.trees + (tree - walk.first_tree);
    const bool plain = walk.delivery == Delivery::F32 && !walk.walker->atomic;
    for (unsigned r = 0; r < R; ++r)
      for (unsigned t = 0; t < T; ++t) {
        Arrival leaf{walk.rows[row + r], descs + t, View::value(trees[t], at[t][r]), 0};
        if (plain) {
          running[r].add(walk, leaf);
          continue;
        }
        const Tree numbered = View::tree(*walk.home, tree - walk.first_tree + t);
        leaf.number_at = View::number_at(numbered, descs[t], at[t][r]);
        deliver(walk, leaf);
      }
  }
};

template <class View, class Rows>
FVM_DEVICE void walk_rows(const ThreadWalk& walk, const Rows& rows) {
  const WalkLoops<View, Rows> loops{walk, rows};
  switch (walk.walker->trees << 4 | walk.walker->rows) {
    case 0x41:
      return loops.template run<4, 1>();
    case 0x21:
      return loops.template run<2, 1>();
    case 0x22:
      return loops.template run<2, 2>();
    case 0x12:
      return loops.template run<1, 2>();
    case 0x14:
      return loops.template run<1, 4>();
    default:
      return loops.template run<1, 1>();
  }
}

}  // namespace forestvm::kernels
