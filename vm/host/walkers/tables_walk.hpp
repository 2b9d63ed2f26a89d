// The walker of the layouts of tables. In a block of rows it goes through one tree after the other; the block's sums
// are kept in a buffer until the last tree.
#pragma once

#include <algorithm>
#include <type_traits>

#include "vm/host/simd/transpose.hpp"
#include "vm/host/walkers/nodes_below.hpp"
#include "vm/host/walkers/tables_descent.hpp"

namespace forestvm::host {

/// Stores the leaves `at` of a tree for `slots` rows from `row` on.
template <class Target, class Score>
FVM_ONE_COPY void store_vectors(const WalkTask& task, const TreeDesc& desc, std::uint32_t row,
                                std::uint32_t slots, const Score* leaves, const std::uint8_t* at) {
  const LeafOffsets offsets(task.width, task.row_count, task.first_kept);
  for (std::uint32_t r = 0; r < slots; r += kCodeRows) {
    const std::uint32_t count = std::min<std::uint32_t>(slots - r, kCodeRows);
    Score* const to = reinterpret_cast<Score*>(task.out) + offsets.at(row + r, desc.number);
    Target::Codes::template put_leaves<false>(to, leaves, desc.leaf_count, at + r, count);
  }
}

/// Writes the numbers of a tree's leaves `at` for `rows` rows, which are `width` numbers apart.
template <class Target>
FVM_ONE_COPY void store_numbers(const std::uint32_t* numbers, const std::uint8_t* at, std::uint32_t rows,
                                std::uint32_t* to, std::size_t width) {
  for (std::uint32_t r = 0; r < rows; ++r, to += width) *to = numbers[at[r]];
}

/// Copies sums as transpose() does.
template <class Target, class Score>
FVM_ONE_COPY void transpose_sums(const Score* from, std::size_t stride, std::size_t rows, std::size_t count,
                                 Score* to, std::size_t width) {
  transpose(from, stride, rows, count, to, width);
}

/// Walks tables. View is TablesView, TreeTablesView or TopTablesView.
template <class Target, class View>
class TablesWalk : TablesDescent<Target, std::is_same_v<View, TreeTablesView>> {
  using Descent = TablesDescent<Target, std::is_same_v<View, TreeTablesView>>;
  using Simd = typename Target::Codes;
  using Descent::codes_;
  using Descent::for_trees;
  using Descent::kHalfBlock;
  using Descent::kMaxBlocks;
  using Descent::kMaxRows;
  using Descent::row_;
  using Descent::rows_;
  using Descent::slots_;
  using Descent::task_;
  /// True if the exits of a tree's tables are nodes and not leaves.
  static constexpr bool kTops = std::is_same_v<View, TopTablesView>;
  /// Most bytes of sums in the buffer, which has room for a line of the cache more for each output.
  static constexpr std::size_t kMaxSumBytes = std::size_t{64} << 10;
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kMaxBuffer = kMaxSumBytes + kMaxSumBytes / kCodeRows / sizeof(float) * kLine;

 public:
  static void walk(const WalkTask& task, const Interleaving&) {
    const Range& rows = task.row_range;
    // Other threads may be writing the codes before and after the range. So a part of a half block goes row
    // by row, unless nothing but this range is in its block.
    const std::uint32_t first = std::min((rows.begin + kHalfBlock - 1) / kHalfBlock * kHalfBlock, rows.end);
    const bool last_of_call = rows.end == task.row_count;
    const std::uint32_t end = last_of_call ? rows.end : std::max(first, rows.end / kHalfBlock * kHalfBlock);
    const std::uint32_t blocks_end = last_of_call ? end : end / kCodeRows * kCodeRows;
    const std::uint32_t step = rows_together(task);
    by_row(task, rows.begin, first);
    for (std::uint32_t row = first; row < end;) {
      std::uint32_t to = std::min(end, row + kHalfBlock);
      if (row % kCodeRows == 0 && row < blocks_end) to = row + std::min(step, blocks_end - row);
      TablesWalk(task, row, to - row).run();
      row = to;
    }
    by_row(task, end, rows.end);
  }

 private:
  TablesWalk(const WalkTask& task, std::uint32_t row, std::uint32_t rows) : Descent(task, row, rows, kTops) {}

  /// Returns the distance of the sums of two outputs in a buffer. The sums of many outputs and rows would compete for a
  /// few sets of the cache if their distance was a power of two.
  template <class Score>
  std::size_t sums_stride() const {
    return slots_ + kLine / sizeof(Score);
  }

  /// Returns the number of rows for which a tree's tables are loaded once.
  static std::uint32_t rows_together(const WalkTask& task) {
    if (task.width == 1 || !sums_beside(task)) return kMaxRows;
    const std::size_t blocks = kMaxSumBytes / score_bytes(task) / kCodeRows / task.width;
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(blocks, 1, kMaxBlocks)) * kCodeRows;
  }

  /// Returns the bytes of a score that is a plain sum of leaves as they lie in memory; 0 for any other delivery.
  static std::size_t score_bytes(const WalkTask& task) {
    if (task.atomic) return 0;
    if (task.delivery == Delivery::F64) return task.wide_leaves == nullptr ? 0 : sizeof(double);
    return task.delivery == Delivery::F32 ? sizeof(float) : 0;
  }

  /// Returns whether the task makes plain sums, and the sums of a block fit the buffer.
  static bool sums_beside(const WalkTask& task) {
    const std::size_t bytes = score_bytes(task);
    return bytes != 0 && task.width * kCodeRows * bytes <= kMaxSumBytes;
  }

  void run() {
    alignas(64) std::byte sums[kMaxBuffer];
    const std::size_t bytes = sums_beside(task_) ? score_bytes(task_) : 0;
    const bool floats = bytes == sizeof(float), doubles = bytes == sizeof(double);
    if (floats) load_sums(reinterpret_cast<float*>(sums));
    if (doubles) load_sums(reinterpret_cast<double*>(sums));
    for_trees([&](std::uint32_t tree, const std::uint8_t* at) {
      if (floats) [[likely]]
        add_leaves(reinterpret_cast<float*>(sums), task_.group.leaves, tree, at);
      else if (doubles)
        add_doubles(reinterpret_cast<double*>(sums), tree, at);
      else
        deliver(tree, at);
    });
    if (floats) store_sums(reinterpret_cast<const float*>(sums));
    if (doubles) store_sums(reinterpret_cast<const double*>(sums));
  }

  const TreeDesc& record(std::uint32_t tree) const { return task_.group.trees[tree - task_.first_tree]; }

  /// Copies the rows' sums to a buffer, which holds the sums of one output after the other: the sums of output k begin
  /// at sums + k * sums_stride().
  template <class Score>
  void load_sums(Score* sums) const {
    const Score* const from = reinterpret_cast<const Score*>(task_.out) + row_ * task_.width;
    const std::size_t stride = sums_stride<Score>();
    transpose_sums<Target>(from, task_.width, rows_, task_.width, sums, stride);
    // Lanes without a row are added to as well. Nobody reads their sums, but they must have been written.
    for (std::size_t k = 0; k < task_.width; ++k)
      for (std::size_t r = rows_; r < slots_; ++r) sums[k * stride + r] = 0;
  }
  template <class Score>
  void store_sums(const Score* sums) const {
    Score* const to = reinterpret_cast<Score*>(task_.out) + row_ * task_.width;
    transpose_sums<Target>(sums, sums_stride<Score>(), task_.width, rows_, to, task_.width);
  }

  /// Adds a tree's leaves to sums in a buffer. `leaves` has the group's leaves in the type of the sums.
  template <class Score>
  FVM_INLINE void add_leaves(Score* sums, const Score* leaves, std::uint32_t tree,
                             const std::uint8_t* at) const {
    const TreeDesc& desc = record(tree);
    Score* const of_output = sums + desc.output * sums_stride<Score>();
    if constexpr (kTops) {
      alignas(64) std::uint32_t numbers[kMaxRows];
      walk_below(tree, at, numbers);
      NodesBelow<Target>::add_leaves(of_output, leaves, numbers, slots_);
    } else {
      Simd::template put_leaves<true>(of_output, leaves + desc.first_leaf, desc.leaf_count, at, slots_);
    }
  }
  [[gnu::noinline]] void add_doubles(double* sums, std::uint32_t tree, const std::uint8_t* at) const {
    add_leaves(sums, task_.wide_leaves, tree, at);
  }

  /// Writes the numbers of the leaves that rows reach from the exits of a tree's tables, counted from the group's
  /// first.
  void walk_below(std::uint32_t tree, const std::uint8_t* at, std::uint32_t* numbers) const {
    NodesBelow<Target>::walk(TopTablesView::tree(task_.group, tree - task_.first_tree), codes_, task_.columns,
                             slots_, at, numbers);
  }

  /// Returns whether the vectors of rows fit the room that a tree's leaves have in an accumulator.
  static bool stores_vectors(const WalkTask& task, std::uint32_t slots) {
    const bool per_tree = task.delivery == Delivery::PerTree || task.delivery == Delivery::PerTree64;
    return per_tree &&
           std::min<std::uint32_t>(slots, kCodeRows) <= LeafOffsets(task.width, task.row_count).stride;
  }

  /// Delivers a tree's leaves in tasks that make no sums in a buffer.
  [[gnu::noinline, gnu::cold]] void deliver(std::uint32_t tree, const std::uint8_t* at) {
    if constexpr (kTops) {
      alignas(64) std::uint32_t numbers[kMaxRows];
      walk_below(tree, at, numbers);
      return deliver(tree, [&](std::uint32_t row) { return numbers[row]; });
    } else {
      const TreeDesc& desc = record(tree);
      if (task_.delivery == Delivery::LeafNumber)
        return store_numbers<Target>(
            task_.numbers + desc.first_leaf, at, rows_,
            reinterpret_cast<std::uint32_t*>(task_.out) + row_ * task_.width + desc.number, task_.width);
      if (!stores_vectors(task_, slots_))
        return deliver(tree, [&](std::uint32_t row) { return desc.first_leaf + at[row]; });
      if (task_.delivery == Delivery::PerTree)
        return store_vectors<Target>(task_, desc, row_, slots_, task_.group.leaves + desc.first_leaf, at);
      return store_vectors<Target>(task_, desc, row_, slots_, task_.wide_leaves + desc.first_leaf, at);
    }
  }

  /// Delivers a tree's leaves. leaf(row) returns the number of a row's leaf, counted from the group's first.
  template <class Leaf>
  FVM_INLINE void deliver(std::uint32_t tree, const Leaf& leaf) {
    if (kTops && task_.delivery == Delivery::LeafNumber) {
      std::uint32_t* out =
          reinterpret_cast<std::uint32_t*>(task_.out) + row_ * task_.width + record(tree).number;
      for (std::uint32_t r = 0; r < rows_; ++r, out += task_.width) *out = task_.numbers[leaf(r)];
      return;
    }
    float values[kMaxRows];
    std::uint64_t numbers_at[kMaxRows];
    for (std::uint32_t r = 0; r < rows_; ++r) {
      values[r] = task_.group.leaves[leaf(r)];
      numbers_at[r] = leaf(r);
    }
    Deliver<Target>::run(task_, {tree, row_, 1, rows_, values, numbers_at});
  }

  [[gnu::noinline, gnu::cold]] static void by_row(const WalkTask& task, std::uint32_t begin,
                                                  std::uint32_t end) {
    for (std::uint32_t row = begin; row < end; ++row) {
      const std::uint8_t* const codes = task.codes + code_offset(row, task.columns);
      for (std::uint32_t t = task.tree_range.begin; t < task.tree_range.end; ++t) {
        const auto tree = View::tree(task.group, t - task.first_tree);
        std::uint32_t at = 0;
        while (!View::is_leaf(tree, at)) at = View::template next<Target>(tree, at, codes);
        const float value = View::value(tree, at);
        const std::uint64_t number = View::number_at(tree, task.group.trees[t - task.first_tree], at);
        Deliver<Target>::run(task, {t, row, 1, 1, &value, &number});
      }
    }
  }
};

}  // namespace forestvm::host
