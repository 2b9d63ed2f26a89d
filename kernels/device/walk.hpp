// The walk of one thread: some rows through some trees, a few of both in lockstep. It knows nothing of blocks and
// barriers. In: where the nodes, the rows and the sums lie. Out: each row's leaves, either added to sums in the
// order of the trees, or stored by the numbers of their trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <forestvm/core/delivery.hpp>
#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/gpu_banks.hpp>

#include "kernels/device/tree_walk.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

struct DeviceAtomics {
  template <class T>
  FVM_DEVICE static T fetch_add(T& sum, T more) {
    return Device::fetch_add(sum, more);
  }
};

/// Rows that a thread takes: `count` rows, `stride` apart.
struct ThreadRows {
  std::uint32_t first, stride, count;

  FVM_DEVICE std::uint32_t operator[](std::uint32_t i) const { return first + i * stride; }
};

/// Rows as the call has them.
struct GlobalRows {
  static constexpr unsigned kMaxLockstep = 2;  ///< most walks in lockstep: each takes one more pointer
  static constexpr bool kStaged = false;       ///< true if rows are in shared memory

  const float* rows;
  std::size_t row_stride;

  FVM_DEVICE const float* at(std::uint32_t row) const { return Device::in_global(rows) + row * row_stride; }
};

/// Values of rows in shared memory, where staged_values() says. It is aligned, so that it is loaded and stored at once.
struct alignas(16) StagedRows {
  static constexpr unsigned kMaxLockstep = 4;
  static constexpr bool kStaged = true;

  struct Row {
    std::uint32_t address, stride;  ///< address of feature 0 in shared memory, and bytes to the next feature

    FVM_DEVICE float operator[](std::uint32_t feature) const {
      return Device::load_shared<float>(address + feature * stride);
    }
  };

  std::uint32_t address;  ///< address of the first row in shared memory
  std::uint32_t first;    ///< number of the first row
  std::uint32_t stride;   ///< words from a feature to the next
  std::uint32_t pitch;    ///< bytes from a row to the next

  FVM_DEVICE Row at(std::uint32_t row) const {
    return {address + (row - first) * pitch, stride * std::uint32_t{sizeof(float)}};
  }
};

/// Rank codes of rows in shared memory, column by column, a byte each, where staged_code() says.
struct StagedCodes {
  static constexpr unsigned kMaxLockstep = 4;
  static constexpr bool kStaged = true;

  struct Row {
    std::uint32_t address, stride;  ///< address of the code of column 0, and bytes to the next column

    FVM_DEVICE std::uint8_t code(std::uint32_t column) const {
      return Device::load_shared<std::uint8_t>(address + column * stride);
    }
  };

  std::uint32_t address;        ///< address of the first column in shared memory
  std::uint32_t first, stride;  ///< number of the first row, and words from a column to the next

  FVM_DEVICE Row at(std::uint32_t row) const {
    return {address + staged_code(row - first), stride * std::uint32_t{sizeof(std::uint32_t)}};
  }
};

/// Rank codes of rows in global memory.
struct CodedTiles {
  static constexpr unsigned kMaxLockstep = 2;
  static constexpr bool kStaged = false;

  const std::uint8_t* codes;
  std::size_t columns;

  FVM_DEVICE const std::uint8_t* at(std::uint32_t row) const { return codes + code_offset(row, columns); }
};

/// The trees and rows that a thread walks, and where the results go.
struct ThreadWalk {
  const LaunchProgram* program;
  GroupData group;             ///< the group, whose nodes may be in shared memory
  bool staged;                 ///< true if the nodes are in shared memory
  std::int32_t staged_offset;  ///< StagedGroup::offset of the nodes, if they are in shared memory
  std::uint32_t first_tree;    ///< number of the group's first tree among the program's
  const LaunchWalker* walker;
  Range trees;
  ThreadRows rows;
  std::byte* out;         ///< results of row `out_row`
  std::uint32_t out_row;  ///< number of the row at which `out` begins
  std::uint32_t width;    ///< elements of a row of `out`
  Delivery delivery;

  /// Returns the group in global memory, by which leaves are numbered.
  FVM_DEVICE const GroupData& home() const { return program->groups[walker->group].data; }
};

/// A leaf that a walk has reached.
struct Arrival {
  std::uint32_t row;
  const TreeDesc* tree;
  float value;
  std::uint64_t number_at;  ///< index of the leaf among the group's leaf numbers
};

template <class Sum>
FVM_DEVICE void add_leaf(const ThreadWalk& walk, const Arrival& leaf, std::size_t at) {
  Sum& sum = reinterpret_cast<Sum*>(walk.out)[at + leaf.tree->output];
  const double* const wide = walk.walker->wide_leaves;
  const SumScale& scale = walk.program->scale;
  const Sum more = wide != nullptr ? Sum::of(wide[leaf.number_at], scale) : Sum::of(leaf.value, scale);
  if (walk.walker->atomic)
    sum.template add_shared<DeviceAtomics>(more);
  else
    sum.add(more);
}

FVM_DEVICE void deliver(const ThreadWalk& walk, const Arrival& leaf) {
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

/// Walks a row through T trees of the group in lockstep, from tree `first` on, and delivers their leaves in that order.
template <unsigned T, class View, class Rows>
FVM_DEVICE void deliver_trees(const ThreadWalk& walk, const GroupData& home, const Rows& rows,
                              std::uint32_t first, std::uint32_t row) {
  decltype(View::tree(walk.group, first)) trees[T];
  std::uint32_t at[T];
  const auto x = rows.at(row);
  for (unsigned t = 0; t < T; ++t) {
    trees[t] = View::tree(walk.group, first + t);
    at[t] = 0;
  }
  const auto step = [&](unsigned t) { at[t] = View::template next<ScalarCompare>(trees[t], at[t], x); };
  FVM_NO_UNROLL
  for (std::uint32_t i = 0; i < walk.walker->steps; ++i)
    for (unsigned t = 0; t < T; ++t) step(t);
  bool leaves = walk.walker->end != WalkEnd::UntilLeaf;
  FVM_NO_UNROLL
  while (!leaves) {
    leaves = true;
    for (unsigned t = 0; t < T; ++t) {
      if (View::is_leaf(trees[t], at[t])) continue;
      leaves = false;
      step(t);
    }
  }
  for (unsigned t = 0; t < T; ++t) {
    const TreeDesc& desc = walk.group.trees[first + t];
    deliver(walk, {row, &desc, View::value(trees[t], at[t]),
                   View::number_at(View::tree(home, first + t), desc, at[t])});
  }
}

/// Walks T trees and R rows at a time while that many are left, and adds leaves to float32 sums that no other
/// thread adds to.
template <class View, Space nodes, class Rows, unsigned T, unsigned R>
class AddingWalks {
 public:
  using Walk = TreeWalk<View, nodes>;
  using Row = decltype(Rows{}.at(0));

  FVM_DEVICE AddingWalks(const ThreadWalk& walk, const Rows& rows)
      : rows_(rows),
        group_(walk.group),
        thread_rows_(walk.rows),
        out_(reinterpret_cast<float*>(walk.out)),
        out_row_(walk.out_row),
        width_(walk.width),
        steps_(walk.walker->steps),
        rest_(Device::kept(walk.walker->rest | (width_ != 1 ? kSeveralSums : 0))),
        rows_outer_(walk.walker->order == WalkOrder::RowsOuter) {
    group_.nodes =
        nodes == Space::Shared ? Device::shared() + walk.staged_offset : Device::in_global(walk.group.nodes);
    group_.trees = Device::in_global(walk.group.trees);
  }

  /// Walks trees [begin, end) of the group for the thread's rows [from, to). T divides the number of trees, and
  /// R the number of rows.
  FVM_DEVICE void run(std::uint32_t begin, std::uint32_t end, std::uint32_t from, std::uint32_t to) const {
    if (begin == end || from == to) return;
    std::uint32_t tree = begin, row = from;
    FVM_NO_UNROLL
    for (;;) {
      Row x[R];
      std::uint32_t first[R];  ///< index of a row's first sum in out_
      float sum[R];            ///< sum of a row, if it has only one
      for (unsigned r = 0; r < R; ++r) {
        const std::uint32_t of_thread = thread_rows_[row + r];
        x[r] = rows_.at(of_thread);
        first[r] = (of_thread - out_row_) * width_;
        sum[r] = width_ == 1 ? out_[first[r]] : 0;
      }
      const std::uint32_t last = rows_outer_ ? end : tree + T;
      FVM_NO_UNROLL
      do {
        tree = Device::kept(tree + T);
        tile(tree, x, first, sum);
        tree = Device::kept_after(tree, sum[0]);
      } while (tree != last);
      if (width_ == 1)
        for (unsigned r = 0; r < R; ++r) out_[first[r]] = sum[r];
      row += R;
      if (rows_outer_) {
        if (row == to) return;
        tree = begin;
      } else if (row != to) {
        tree -= T;
      } else {
        if (tree == end) return;
        row = from;
      }
    }
  }

  /// Walks trees [begin, end) of the group for one row, and adds their leaves to `sum`, or to `out_` if the row has
  /// several sums. T divides the number of trees.
  FVM_DEVICE void add_row(std::uint32_t begin, std::uint32_t end, const Row (&x)[1], float (&sum)[1]) const {
    static_assert(R == 1);
    const std::uint32_t first[1] = {0};
    std::uint32_t tree = begin;
    FVM_NO_UNROLL
    while (tree != end) {
      tree = Device::kept(tree + T);
      tile(tree, x, first, sum);
      tree = Device::kept_after(tree, sum[0]);
    }
  }

  /// Continues all walks to their leaves. If a step from a leaf stays there, walks go on together and are tested
  /// only after several steps.
  FVM_DEVICE static void walk_to_leaves(const Walk (&trees)[T], typename Walk::Position (&at)[T][R],
                                        const Row (&x)[R]) {
    FVM_NO_UNROLL
    for (;;) {
      bool leaves = true;
      for (unsigned t = 0; t < T; ++t)
        for (unsigned r = 0; r < R; ++r) {
          const bool leaf = trees[t].is_leaf(at[t][r]);
          leaves = leaves & leaf;
          if (!View::kLeavesHoldStill && !leaf) trees[t].step(at[t][r], x[r]);
        }
      if (leaves) return;
      if (View::kLeavesHoldStill)
        for (unsigned i = 0; i < kBetweenTests; ++i) step(trees, at, x);
    }
  }

  /// Takes a step with all walks. Where a step has parts, the trees of a row take each part together: otherwise nvcc
  /// lets each walk wait for its code before it loads the next node. For several rows that would spill registers.
  FVM_DEVICE static void step(const Walk (&trees)[T], typename Walk::Position (&at)[T][R],
                              const Row (&x)[R]) {
    if constexpr (R == 1 && requires { trees[0].node(at[0][0]); }) {
      typename View::Node loaded[T];
      std::uint32_t codes[T];
      for (unsigned t = 0; t < T; ++t) loaded[t] = trees[t].node(at[t][0]);
      for (unsigned t = 0; t < T; ++t) codes[t] = code_word(x[0], loaded[t].column());
      for (unsigned t = 0; t < T; ++t) trees[t].move(at[t][0], loaded[t], codes[t]);
    } else {
      for (unsigned t = 0; t < T; ++t)
        for (unsigned r = 0; r < R; ++r) trees[t].step(at[t][r], x[r]);
    }
  }

 private:
  /// Makes T x R walks in lockstep, through the last T trees before tree `end`.
  FVM_DEVICE void tile(std::uint32_t end, const Row (&x)[R], const std::uint32_t (&first)[R],
                       float (&sum)[R]) const {
    GroupData group = group_;
    group.trees = group.trees + end - T;
    Walk trees[T];
    typename Walk::Position at[T][R];
    for (unsigned t = 0; t < T; ++t) trees[t].open(group, t);
    for (unsigned t = 0; t < T; ++t)
      for (unsigned r = 0; r < R; ++r) at[t][r] = trees[t].root();
    FVM_NO_UNROLL
    for (std::uint32_t left = steps_ / kUnrolledSteps; left != 0; --left)
      for (unsigned i = 0; i < kUnrolledSteps; ++i) step(trees, at, x);
    float values[T][R];
    const auto load_values = [&] {
      for (unsigned t = 0; t < T; ++t)
        for (unsigned r = 0; r < R; ++r) values[t][r] = trees[t].value(at[t][r]);
    };
    const auto add_values = [&] {
      for (unsigned r = 0; r < R; ++r)
        for (unsigned t = 0; t < T; ++t) sum[r] += values[t][r];
    };
    if (rest_ == 0) {
      load_values();
      add_values();
      return;
    }
    FVM_NO_UNROLL
    for (std::uint32_t left = rest_ % kUnrolledSteps; left != 0; --left) step(trees, at, x);
    if ((rest_ & LaunchWalker::kUntilLeaf) != 0) walk_to_leaves(trees, at, x);
    load_values();
    if ((rest_ & kSeveralSums) == 0)
      add_values();
    else
      for (unsigned r = 0; r < R; ++r)
        for (unsigned t = 0; t < T; ++t) out_[first[r] + group.trees[t].output] += values[t][r];
  }

  static constexpr std::uint32_t kSeveralSums = 1U << 8;
  static constexpr unsigned kBetweenTests = 2;  ///< number of steps between two tests for leaves

  const Rows& rows_;
  GroupData group_;
  ThreadRows thread_rows_;
  float* out_;
  std::uint32_t out_row_, width_, steps_;
  /// LaunchWalker::rest, and kSeveralSums: what a tile rarely has to do, so that it asks once. It is kept, because
  /// compilers would compute it for each tile.
  std::uint32_t rest_;
  bool rows_outer_;
};

/// Walks a row through T trees of the group in lockstep, from tree `first` on, and calls to(tree, value) for their
/// leaves in that order. It takes the steps of AddingWalks.
template <unsigned T, class View, class Rows, class To>
FVM_DEVICE void deliver_values(const ThreadWalk& walk, const Rows& rows, std::uint32_t first,
                               std::uint32_t row, const To& to) {
  using Walks = AddingWalks<View, Space::Global, Rows, T, 1>;
  GroupData group = walk.group;
  group.nodes = Device::in_global(group.nodes);
  group.trees = Device::in_global(group.trees) + first;
  typename Walks::Walk trees[T];
  typename Walks::Walk::Position at[T][1];
  const typename Walks::Row x[1] = {rows.at(row)};
  for (unsigned t = 0; t < T; ++t) trees[t].open(group, t);
  for (unsigned t = 0; t < T; ++t) at[t][0] = trees[t].root();
  FVM_NO_UNROLL
  for (std::uint32_t left = walk.walker->steps / kUnrolledSteps; left != 0; --left)
    for (unsigned i = 0; i < kUnrolledSteps; ++i) Walks::step(trees, at, x);
  const std::uint32_t rest = walk.walker->rest;
  FVM_NO_UNROLL
  for (std::uint32_t left = rest % kUnrolledSteps; left != 0; --left) Walks::step(trees, at, x);
  if ((rest & LaunchWalker::kUntilLeaf) != 0) Walks::walk_to_leaves(trees, at, x);
  float values[T];
  for (unsigned t = 0; t < T; ++t) values[t] = trees[t].value(at[t][0]);
  for (unsigned t = 0; t < T; ++t) to(group.trees + t, values[t]);
}

/// Returns true if leaves are delivered by their values alone, which deliver_values() does.
FVM_DEVICE bool delivers_values(const ThreadWalk& walk) {
  return walk.walker->wide_leaves == nullptr && walk.delivery != Delivery::PerTree64 &&
         walk.delivery != Delivery::LeafNumber;
}

/// The most trees that walks which deliver leaves take in lockstep. Larger nodes take more registers: trees whose nodes
/// have more than 8 bytes are walked alone.
template <class View>
inline constexpr unsigned kDeliveredTogether = sizeof(typename View::Node) <= 4   ? 4
                                               : sizeof(typename View::Node) <= 8 ? Device::kDeliveredTrees
                                                                                  : 1;

/// Walks the thread's rows and trees, and delivers the leaves as the walk says: if `values`, by their values. If the
/// walker has a tile of four walks, up to four trees at a time are walked in lockstep.
template <class View, bool values, class Rows>
FVM_DEVICE void deliver_leaves(const ThreadWalk& walk, const Rows& rows) {
  constexpr unsigned kTogether = kDeliveredTogether<View>;
  const bool rows_outer = walk.walker->order == WalkOrder::RowsOuter;
  const bool lockstep = kTogether != 1 && (walk.walker->tile >> 4) * (walk.walker->tile & 15) == 4;
  const std::uint32_t trees = walk.trees.size(), begin = walk.trees.begin - walk.first_tree;
  const std::uint32_t tiles = lockstep ? trees / kTogether : 0;  // which come before the remaining trees
  const std::uint32_t tree_visits = trees - tiles * (kTogether - 1);
  const std::uint32_t outer = rows_outer ? walk.rows.count : tree_visits;
  const std::uint32_t inner = rows_outer ? tree_visits : walk.rows.count;
  const auto walk_trees = [&]<unsigned T>(std::uint32_t first, std::uint32_t row) {
    if constexpr (values)
      deliver_values<T, View>(walk, rows, first, row, [&](const TreeDesc* tree, float value) {
        deliver(walk, {row, tree, value, 0});
      });
    else
      deliver_trees<T, View>(walk, walk.home(), rows, first, row);
  };
  FVM_NO_UNROLL
  for (std::uint32_t i = 0; i < outer; ++i) {
    FVM_NO_UNROLL
    for (std::uint32_t j = 0; j < inner; ++j) {
      const std::uint32_t visit = rows_outer ? j : i, row = walk.rows[rows_outer ? i : j];
      if constexpr (kTogether != 1)
        if (visit < tiles) {
          walk_trees.template operator()<kTogether>(begin + visit * kTogether, row);
          continue;
        }
      walk_trees.template operator()<1>(begin + visit + tiles * (kTogether - 1), row);
    }
  }
}

/// The most trees or rows that walks which add leaves take in lockstep. Nodes of 12 bytes, which are three loads, and
/// leaves aside take more registers, so at most two such walks go in lockstep.
template <class View, class Rows>
inline constexpr unsigned kAddedTogether = sizeof(typename View::Node) != 12 && !View::kLeavesAside
                                               ? Rows::kMaxLockstep
                                               : 2;

/// Walks the thread's rows and trees in the tiles of the walker, and adds leaves to float32 sums.
template <class View, Space nodes, class Rows>
FVM_DEVICE void add_leaves(const ThreadWalk& walk, const Rows& rows) {
  const std::uint32_t begin = walk.trees.begin - walk.first_tree, end = walk.trees.end - walk.first_tree;
  const std::uint32_t count = walk.rows.count;
  // Trees [begin, tree) of rows [0, row) are walked in tiles.
  std::uint32_t tree = begin, row = count;
  const auto tiles = [&]<unsigned T, unsigned R>() {
    tree = begin + (end - begin) / T * T;
    row = count / R * R;
    AddingWalks<View, nodes, Rows, T, R>(walk, rows).run(begin, tree, 0, row);
  };
  const std::uint8_t lockstep = walk.walker->tile;
  if constexpr (kAddedTogether<View, Rows> == 4) {
    if (lockstep == tile(4, 1))
      tiles.template operator()<4, 1>();
    else if (lockstep == tile(2, 2))
      tiles.template operator()<2, 2>();
    else if (lockstep == tile(1, 4))
      tiles.template operator()<1, 4>();
    else if (lockstep == tile(2, 1))
      tiles.template operator()<2, 1>();
    else if (lockstep == tile(1, 2))
      tiles.template operator()<1, 2>();
  } else if (lockstep == tile(1, 4) || lockstep == tile(1, 2)) {
    tiles.template operator()<1, 2>();
  } else if (lockstep != tile(1, 1)) {
    tiles.template operator()<2, 1>();
  }
  if (tree == end && row == count) return;
  const AddingWalks<View, nodes, Rows, 1, 1> rest(walk, rows);
  FVM_NO_UNROLL
  for (const bool below : {false, true})
    rest.run(below ? begin : tree, end, below ? row : 0, below ? count : row);
}

/// The type in which a function that is called out of line takes a T. It is a copy, because an object whose address is
/// known elsewhere lies in memory, also where nothing is called. Where registers do not suffice for copies, as for
/// sparse4 and interleaved trees, it is a reference.
template <class View, class T>
using Handed = std::conditional_t<Device::kHandsOverCopies && !std::is_same_v<View, Sparse4View> &&
                                      !kInterleavesTrees<View>,
                                  const T, const T&>;

/// Calls deliver_leaves out of line, because it is rarely used where other code matters more.
template <class View, bool values, class Rows>
FVM_DEVICE_CALL void call_deliver_leaves(Handed<View, ThreadWalk> walk, Handed<View, Rows> rows) {
  deliver_leaves<View, values>(walk, rows);
}

template <class View, class Rows>
FVM_DEVICE void walk_rows(const ThreadWalk& walk, const Rows& rows) {
  if (walk.delivery != Delivery::F32 || walk.walker->atomic) {
    if (Rows::kStaged && !walk.staged && delivers_values(walk))
      call_deliver_leaves<View, Rows::kStaged, Rows>(walk, rows);
    else
      call_deliver_leaves<View, false, Rows>(walk, rows);
  } else if (walk.staged) {
    add_leaves<View, Space::Shared>(walk, rows);
  } else {
    add_leaves<View, Space::Global>(walk, rows);
  }
}

// Walks of known code: a thread's only row, in shared memory, through its trees, whose nodes are in global memory.

/// Stores the float32 sums of a row's leaves.
template <class View, class Rows>
FVM_DEVICE void sum_row(const ThreadWalk& walk, const Rows& rows) {
  constexpr unsigned kMax = kAddedTogether<View, Rows>;
  std::uint32_t tree = walk.trees.begin - walk.first_tree;
  const std::uint32_t end = walk.trees.end - walk.first_tree;
  auto* const out = reinterpret_cast<float*>(walk.out);
  const decltype(rows.at(0)) x[1] = {rows.at(walk.rows.first)};
  float sum[1] = {0};
  if (walk.width != 1) {
    FVM_NO_UNROLL
    for (std::uint32_t k = 0; k < walk.width; ++k) out[k] = 0;
  }
  const auto tiles = [&]<unsigned T>() {
    const std::uint32_t last = tree + (end - tree) / T * T;
    AddingWalks<View, Space::Global, Rows, T, 1>(walk, rows).add_row(tree, last, x, sum);
    tree = last;
  };
  const std::uint8_t lockstep = walk.walker->tile;
  if (kMax == 4 && lockstep == tile(4, 1))
    tiles.template operator()<kMax>();
  else if (lockstep != tile(1, 1))
    tiles.template operator()<2>();
  tiles.template operator()<1>();
  if (walk.width == 1) *out = sum[0];
}

/// Walks a row as sum_row() does, and calls to(tree, value) for each leaf.
template <class View, class Rows, class To>
FVM_DEVICE void deliver_row(const ThreadWalk& walk, const Rows& rows, const To& to) {
  constexpr unsigned kTogether = kDeliveredTogether<View>;
  std::uint32_t tree = walk.trees.begin - walk.first_tree;
  const std::uint32_t end = walk.trees.end - walk.first_tree;
  if constexpr (kTogether != 1)
    if (walk.walker->tile == tile(4, 1)) {
      FVM_NO_UNROLL
      for (; end - tree >= kTogether; tree += kTogether)
        deliver_values<kTogether, View>(walk, rows, tree, walk.rows.first, to);
    }
  FVM_NO_UNROLL
  for (; tree != end; ++tree) deliver_values<1, View>(walk, rows, tree, walk.rows.first, to);
}

/// Stores the sums of a row's leaves, each a Sum.
template <class View, class Sum, class Rows>
FVM_DEVICE void sum_row_exactly(const ThreadWalk& walk, const Rows& rows) {
  auto* const out = reinterpret_cast<Sum*>(walk.out);
  Sum only{};  // the row's sum, if it has one
  if (walk.width != 1) {
    FVM_NO_UNROLL
    for (std::uint32_t k = 0; k < walk.width; ++k) out[k] = Sum{};
  }
  deliver_row<View>(walk, rows, [&](const TreeDesc* tree, float value) {
    const Sum more = Sum::of(value, walk.program->scale);
    if (walk.width == 1)
      only.add(more);
    else
      out[tree->output].add(more);
  });
  if (walk.width == 1) *out = only;
}

/// Keeps the leaves of a row, each at the number of its tree.
template <class View, class Rows>
FVM_DEVICE void keep_leaves_of_row(const ThreadWalk& walk, const Rows& rows) {
  auto* const out = reinterpret_cast<float*>(walk.out);
  deliver_row<View>(walk, rows, [&](const TreeDesc* tree, float value) { out[tree->number] = value; });
}

}  // namespace forestvm::kernels
