// The walker, one template for every layout, interleaving and way of ending. In: a task (trees x rows, where they
// lie). Out: each row's leaves, either added to the accumulator in the order of the trees, or stored by the numbers
// of their trees.
//
// Target is the type of the CPU target that instantiates it: it has the compare of a tile's nodes, and keeps
// code compiled for different CPUs apart, which must not share a symbol.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <forestvm/core/delivery.hpp>
#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/core/ranges.hpp>
#include <forestvm/core/sums.hpp>

#include "vm/host/atomics.hpp"
#include "vm/host/leaf_offsets.hpp"
#include "vm/host/walkers/byte_tests.hpp"
#include "vm/host/walkers/root_nodes.hpp"

/// Marks a function that is called, not inlined, and of which there is one copy: without the mark GCC makes another
/// copy for each constant that callers pass.
#ifdef __clang__
#define FVM_ONE_COPY __attribute__((noinline))
#else
#define FVM_ONE_COPY __attribute__((noinline, noclone))
#endif

namespace forestvm::host {

/// The inputs of a walker, all of them verified.
struct WalkTask {
  GroupData group;
  const RootNodes* roots;        ///< The roots of the group's trees; null if the walker is scalar.
  const ByteTests* byte_tests;   ///< The tests of the group's trees as bytes; null if walks begin at roots.
  std::uint32_t first_tree;      ///< The group's first tree, as the program counts trees.
  const std::uint32_t* numbers;  ///< Numbers of the group's leaves.
  const double* wide_leaves;     ///< Float64 outputs of the group's leaves; null if the program has none.
  Range tree_range;              ///< Trees to walk, as the program counts them.
  Range row_range;               ///< Rows to walk.
  const float* rows;
  std::size_t row_stride;     ///< Floats from one row to the next.
  const std::uint8_t* codes;  ///< Codes of row 0: see core/encoder.hpp.
  std::size_t columns;        ///< Number of columns of codes.
  std::uint32_t row_count;    ///< Rows of the pass, all of which have codes.
  std::byte* out;     ///< Output of row 0: sums, per-tree values (see LeafOffsets) or int32 leaf numbers.
  std::size_t width;  ///< Elements of one row of `out`.
  std::uint32_t first_kept;  ///< The first tree for whose values `out` has room, if it has per-tree values.
  SumScale scale;
  std::uint32_t steps;  ///< See WalkerDesc::steps. Walkers of lanes look for leaves at these steps, too.
  WalkOrder order;
  Delivery delivery;
  bool atomic;
  bool exact;  ///< True if the walks end after `steps` steps.
};

struct TileFunctions;

/// The walks that a scalar walker takes in lockstep: 2^log_trees trees by 2^log_rows rows.
struct Interleaving {
  const TileFunctions* tiles = nullptr;  ///< Functions of the layout.
  unsigned log_trees = 0, log_rows = 0;
};

using WalkFunction = void (*)(const WalkTask&, const Interleaving&);

/// A function, and the walks that it takes in lockstep if it is walk_in_tiles.
struct Walker {
  WalkFunction function = nullptr;
  Interleaving interleaving{};

  explicit operator bool() const { return function != nullptr; }
  void operator()(const WalkTask& task) const { function(task, interleaving); }
};

/// Scalar walkers take at most 2^kMaxScalarLog walks in lockstep, whatever is asked for: more would not fit
/// the registers.
inline constexpr unsigned kMaxScalarLog = 4;
inline constexpr unsigned kMaxScalarWalks = 1u << kMaxScalarLog;
/// A walk on its own of up to this number of steps has no loop, and takes up to 30% less time. Walks in lockstep
/// would gain nothing.
inline constexpr unsigned kMaxFixedSteps = 8;

/// The leaves of trees x rows pairs that are not simply added to float32 sums.
struct Leaves {
  std::uint32_t tree, row, trees, rows;
  const float* values;              ///< Outputs of the leaves, by tree, then row.
  const std::uint64_t* numbers_at;  ///< Indices of the leaves' numbers among the group's, in the same order.
};

template <class Target>
struct Deliver {
  /// Adds the leaves to sums. get(i) returns leaf i.
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

  /// Adds the leaves as float64 if the program has float64 leaves, otherwise as float32.
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

  /// Stores the leaves, each at the offset of its tree. get(i) returns leaf i.
  template <class T, class Get>
  static void put(const WalkTask& task, const Leaves& leaves, Get get) {
    const TreeDesc* trees = task.group.trees + (leaves.tree - task.first_tree);
    const LeafOffsets offsets(task.width, task.row_count, task.first_kept);
    T* out = reinterpret_cast<T*>(task.out);
    for (std::uint32_t t = 0; t < leaves.trees; ++t)
      for (std::uint32_t r = 0; r < leaves.rows; ++r)
        out[offsets.at(leaves.row + r, trees[t].number)] = get(t * leaves.rows + r);
  }

  /// Stores the leaves' numbers row by row, as the caller gets them.
  static void put_numbers(const WalkTask& task, const Leaves& leaves) {
    const TreeDesc* trees = task.group.trees + (leaves.tree - task.first_tree);
    auto* out = reinterpret_cast<std::uint32_t*>(task.out);
    for (std::uint32_t t = 0; t < leaves.trees; ++t)
      for (std::uint32_t r = 0; r < leaves.rows; ++r)
        out[(leaves.row + std::size_t{r}) * task.width + trees[t].number] =
            task.numbers[leaves.numbers_at[t * leaves.rows + r]];
  }

  FVM_ONE_COPY static void run(const WalkTask& task, const Leaves& leaves) {
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
        return put_numbers(task, leaves);
    }
  }
};

/// Returns what View::next reads of a row: its values, or its codes.
template <class View>
FVM_INLINE auto row_of(const WalkTask& task, std::size_t row) {
  if constexpr (kTakesCodes<View>)
    return task.codes + code_offset(row, task.columns);
  else
    return task.rows + row * task.row_stride;
}

/// Delivers the leaves of trees x rows walks, at most kMaxScalarWalks; `at` says where each ended, by tree,
/// then row.
template <class Target, class View>
FVM_ONE_COPY void deliver(const WalkTask& task, std::uint32_t tree, std::uint32_t row, std::uint32_t trees,
                          std::uint32_t rows, const std::uint32_t* at) {
  float values[kMaxScalarWalks];
  std::uint64_t numbers_at[kMaxScalarWalks];
  for (std::uint32_t t = 0; t < trees; ++t) {
    const auto nodes = View::tree(task.group, tree - task.first_tree + t);
    const TreeDesc& desc = task.group.trees[tree - task.first_tree + t];
#pragma GCC unroll 1  // GCC would repeat the body for each of kMaxScalarWalks walks
    for (std::uint32_t i = t * rows; i < (t + 1) * rows; ++i) {
      values[i] = View::value(nodes, at[i]);
      numbers_at[i] = View::number_at(nodes, desc, at[i]);
    }
  }
  Deliver<Target>::run(task, {tree, row, trees, rows, values, numbers_at});
}

template <class Target, class View>
struct TileWalk {
  using Tree = typename View::Tree;
  using Row = decltype(row_of<View>(std::declval<WalkTask>(), 0));

  /// Walks Trees x Rows pairs in lockstep. With kFixed they take exactly task.steps steps, at most kMaxFixedSteps.
  template <unsigned Trees, unsigned Rows, bool kFixed = false>
  static void tile(const WalkTask& task, std::uint32_t tree, std::uint32_t row) {
    Tree trees[Trees];
    Row x[Rows];
    std::uint32_t at[Trees][Rows] = {};
#pragma GCC unroll 16
    for (unsigned t = 0; t < Trees; ++t) trees[t] = View::tree(task.group, tree - task.first_tree + t);
#pragma GCC unroll 16
    for (unsigned r = 0; r < Rows; ++r) x[r] = row_of<View>(task, row + static_cast<std::size_t>(r));

    if constexpr (kFixed) {
      fixed_steps<Trees, Rows>(task.steps, trees, x, at);
    } else {
      for (std::uint32_t i = 0; i < task.steps; ++i) step<Trees, Rows>(trees, x, at);
      if (!task.exact)
        while (step_to_leaf<Trees, Rows>(trees, x, at)) {
        }
    }

    if (task.delivery == Delivery::F32 && !task.atomic) [[likely]] {
      const TreeDesc* descs = task.group.trees + (tree - task.first_tree);
      float* sums = reinterpret_cast<float*>(task.out);
#pragma GCC unroll 16
      for (unsigned t = 0; t < Trees; ++t)
#pragma GCC unroll 16
        for (unsigned r = 0; r < Rows; ++r)
          sums[(row + static_cast<std::size_t>(r)) * task.width + descs[t].output] +=
              View::value(trees[t], at[t][r]);
      return;
    }
    std::uint32_t leaves[Trees * Rows];  // a copy, so that `at` may stay in registers
#pragma GCC unroll 16
    for (unsigned t = 0; t < Trees; ++t)
#pragma GCC unroll 16
      for (unsigned r = 0; r < Rows; ++r) leaves[t * Rows + r] = at[t][r];
    deliver<Target, View>(task, tree, row, Trees, Rows, leaves);
  }

 private:
  template <unsigned Trees, unsigned Rows>
  FVM_INLINE static void step(const Tree* trees, const Row* x, std::uint32_t (&at)[Trees][Rows]) {
#pragma GCC unroll 16
    for (unsigned t = 0; t < Trees; ++t)
#pragma GCC unroll 16
      for (unsigned r = 0; r < Rows; ++r) at[t][r] = View::template next<Target>(trees[t], at[t][r], x[r]);
  }

  /// Takes a number of steps by one jump into a chain of them.
  template <unsigned Trees, unsigned Rows>
  FVM_INLINE static void fixed_steps(std::uint32_t steps, const Tree* trees, const Row* x,
                                     std::uint32_t (&at)[Trees][Rows]) {
    static_assert(kMaxFixedSteps == 8);
    switch (steps) {  // NOLINTNEXTLINE(bugprone-branch-clone): each case takes one step.
      case 8:
        step<Trees, Rows>(trees, x, at);
        [[fallthrough]];
      case 7:
        step<Trees, Rows>(trees, x, at);
        [[fallthrough]];
      case 6:
        step<Trees, Rows>(trees, x, at);
        [[fallthrough]];
      case 5:
        step<Trees, Rows>(trees, x, at);
        [[fallthrough]];
      case 4:
        step<Trees, Rows>(trees, x, at);
        [[fallthrough]];
      case 3:
        step<Trees, Rows>(trees, x, at);
        [[fallthrough]];
      case 2:
        step<Trees, Rows>(trees, x, at);
        [[fallthrough]];
      case 1:
        step<Trees, Rows>(trees, x, at);
    }
  }

  /// Takes one step of every walk that has not reached a leaf; returns false if all have.
  template <unsigned Trees, unsigned Rows>
  FVM_INLINE static bool step_to_leaf(const Tree* trees, const Row* x, std::uint32_t (&at)[Trees][Rows]) {
    bool walking = false;
#pragma GCC unroll 16
    for (unsigned t = 0; t < Trees; ++t)
#pragma GCC unroll 16
      for (unsigned r = 0; r < Rows; ++r) {
        const bool leaf = View::is_leaf(trees[t], at[t][r]);
        const std::uint32_t next = View::template next<Target>(trees[t], at[t][r], x[r]);
        at[t][r] = leaf ? at[t][r] : next;
        walking |= !leaf;
      }
    return walking;
  }
};

/// The logarithm of the most walks of one tree that scalar walkers take in lockstep. More walks gain nothing where each
/// of them needs more registers.
template <class View>
inline constexpr unsigned kMaxRowLog = View::kTileWidth > 4 || (View::kTileWidth > 1 && View::kLeavesAside)
                                           ? kMaxScalarLog - 1
                                           : kMaxScalarLog;
/// The logarithm of the most trees that are walked together for one row. Each tree takes a register, so that 16 trees
/// are slower than twice 8 in nearly all layouts, and 8 no faster than twice 4 in sparse tiles of 8 nodes.
template <class View>
inline constexpr unsigned kMaxTreeLog =
    View::kTileWidth > 4 && View::kLeavesAside ? kMaxScalarLog - 2 : kMaxScalarLog - 1;
/// The logarithm of the most trees, and of the most rows, that are walked together if there are several of both.
inline constexpr unsigned kMaxSquareLog = 1;

/// Walks 2^i trees and 2^j rows in lockstep, from a tree and a row on.
using TileFunction = void (*)(const WalkTask& task, std::uint32_t tree, std::uint32_t row);

/// The functions of a layout.
struct TileFunctions {
  unsigned max_row_log;   ///< Logarithm of the most walks of one tree in lockstep.
  unsigned max_tree_log;  ///< Logarithm of the most trees of one row in lockstep.
  /// Functions [i][j] for 2^i trees and 2^j rows in lockstep.
  TileFunction lockstep[kMaxScalarLog + 1][kMaxScalarLog + 1] = {};
  TileFunction fixed_walk = nullptr;  ///< Function for one walk of up to kMaxFixedSteps steps, or null.

  template <class Target, class View>
  static constexpr TileFunctions all() {
    TileFunctions table{kMaxRowLog<View>, kMaxTreeLog<View>};
    constexpr unsigned logs = kMaxScalarLog + 1;
    [&]<unsigned... Pairs>(std::integer_sequence<unsigned, Pairs...>) {
      (table.fill<Target, View, Pairs / logs, Pairs % logs>(), ...);
    }
    (std::make_integer_sequence<unsigned, logs * logs>{});
    if constexpr (View::kTileWidth == 1)
      table.fixed_walk = &TileWalk<Target, View>::template tile<1, 1, true>;
    return table;
  }

  /// Returns the function for a walk on its own.
  TileFunction for_one_walk(const WalkTask& task) const {
    const bool fixed = task.exact && task.steps <= kMaxFixedSteps && fixed_walk != nullptr;
    return fixed ? fixed_walk : lockstep[0][0];
  }

  /// Returns the interleaving that walks at most as many trees and rows together as are asked for. Several trees
  /// and several rows are walked together only if neither trees nor rows alone are enough.
  Interleaving interleaving(unsigned log_trees, unsigned log_rows) const {
    constexpr unsigned kEnough = 2 * kMaxSquareLog + 1;
    if (log_trees == 0 || log_rows >= kEnough) return {this, 0, std::min(log_rows, max_row_log)};
    if (log_rows == 0 || log_trees >= kEnough) return {this, std::min(log_trees, max_tree_log), 0};
    return {this, kMaxSquareLog, kMaxSquareLog};
  }

 private:
  template <class Target, class View, unsigned I, unsigned J>
  constexpr void fill() {
    constexpr bool built = I == 0   ? J <= kMaxRowLog<View>
                           : J == 0 ? I <= kMaxTreeLog<View>
                                    : I <= kMaxSquareLog && J <= kMaxSquareLog;
    if constexpr (built) lockstep[I][J] = &TileWalk<Target, View>::template tile<1u << I, 1u << J>;
  }
};

template <class Target, class View>
inline constexpr TileFunctions kTiles = TileFunctions::all<Target, View>();

/// Calls visit(log, i) for each 2^log consecutive elements of a range, then for each half as many of the rest, and
/// so on down to one.
template <class Visit>
FVM_INLINE void for_tiles(std::uint32_t begin, std::uint32_t end, unsigned log, const Visit& visit) {
  for (;; --log) {
    for (; end - begin >= 1u << log; begin += 1u << log) visit(log, begin);
    if (log == 0) return;
  }
}

/// Calls visit(log of trees, log of rows, tree, row) for each tile of a task.
template <class Visit>
FVM_INLINE void for_tiles(const WalkTask& task, unsigned log_trees, unsigned log_rows, const Visit& visit) {
  const Range& trees = task.tree_range;
  const Range& rows = task.row_range;
  if (task.order == WalkOrder::RowsOuter)
    for_tiles(rows.begin, rows.end, log_rows, [&](unsigned r, std::uint32_t row) {
      for_tiles(trees.begin, trees.end, log_trees,
                [&](unsigned t, std::uint32_t tree) { visit(t, r, tree, row); });
    });
  else
    for_tiles(trees.begin, trees.end, log_trees, [&](unsigned t, std::uint32_t tree) {
      for_tiles(rows.begin, rows.end, log_rows,
                [&](unsigned r, std::uint32_t row) { visit(t, r, tree, row); });
    });
}

/// Walks a task tile by tile, with the layout's functions for each interleaving.
template <class Target>
FVM_ONE_COPY void walk_in_tiles(const WalkTask& task, const Interleaving& interleaving) {
  const TileFunctions& tiles = *interleaving.tiles;
  const TileFunction one_walk = tiles.for_one_walk(task);
  for_tiles(task, interleaving.log_trees, interleaving.log_rows,
            [&](unsigned t, unsigned r, std::uint32_t tree, std::uint32_t row) {
              (t + r == 0 ? one_walk : tiles.lockstep[t][r])(task, tree, row);
            });
}

/// Walks a task one pair of tree and row at a time, without the functions for other tiles.
template <class Target, class View>
void walk_one_by_one(const WalkTask& task, const Interleaving&) {
  for_tiles(task, 0, 0, [&](unsigned, unsigned, std::uint32_t tree, std::uint32_t row) {
    TileWalk<Target, View>::template tile<1, 1>(task, tree, row);
  });
}

}  // namespace forestvm::host
