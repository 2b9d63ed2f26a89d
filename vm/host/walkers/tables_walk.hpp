// The walker of the tables layout: a vector of rows takes a hop by looking its places up in tables that lie
// in registers. Nothing depends on the data but the places themselves, so nothing is mispredicted. Trees
// outer within blocks of rows; a block's sums are kept beside each other until its last tree.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include <forestvm/core/layout/tables.hpp>

#include "vm/host/walkers/walk.hpp"

namespace forestvm::host {

template <class Target>
class TablesWalk {
  using Simd = typename Target::Codes;
  using Bytes = typename Simd::Bytes;
  using Tree = TablesView::Tree;
  static constexpr unsigned kLanes = Simd::kLanes;
  static constexpr unsigned kMostBlocks = 8;  ///< walked together
  static constexpr unsigned kMostRows = kMostBlocks * kCodeRows;
  static constexpr std::size_t kMostSumBytes = std::size_t{64} << 10;  ///< of what is kept beside each other

 public:
  static void walk(const WalkTask& task) {
    const Range& rows = task.row_range;
    std::uint32_t row = rows.begin;
    // Codes before and after the range may be being written by others: a part of a block goes row by row,
    // unless nothing but this range is in the block.
    const std::uint32_t first_block = (rows.begin + kCodeRows - 1) / kCodeRows * kCodeRows;
    const std::uint32_t last = rows.end == task.row_count ? rows.end : rows.end / kCodeRows * kCodeRows;
    if (last <= first_block) return by_row(task, rows.begin, rows.end);
    by_row(task, row, first_block);
    const std::uint32_t step = rows_together(task);
    for (row = first_block; row < last; row += std::min(step, last - row))
      TablesWalk(task, row, std::min(step, last - row)).run();
    by_row(task, last, rows.end);
  }

 private:
  /// Rows for which a tree's tables are loaded once.
  static std::uint32_t rows_together(const WalkTask& task) {
    if (task.width == 1 || !sums_beside(task)) return kMostRows;
    const std::size_t blocks = kMostSumBytes / score_bytes(task) / kCodeRows / task.width;
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(blocks, 1, kMostBlocks)) * kCodeRows;
  }

  /// Of a plain sum of leaves as they lie in memory; 0 for any other delivery.
  static std::size_t score_bytes(const WalkTask& task) {
    if (task.atomic) return 0;
    if (task.delivery == Delivery::F64) return task.wide_leaves == nullptr ? 0 : sizeof(double);
    return task.delivery == Delivery::F32 ? sizeof(float) : 0;
  }

  /// Plain sums, few enough to keep a block's in one place.
  static bool sums_beside(const WalkTask& task) {
    const std::size_t bytes = score_bytes(task);
    return bytes != 0 && task.width * kCodeRows * bytes <= kMostSumBytes;
  }

  TablesWalk(const WalkTask& task, std::uint32_t row, std::uint32_t rows)
      : task_(task), row_(row), rows_(rows), blocks_((rows + kCodeRows - 1) / kCodeRows) {}

  void run() {
    if (!sums_beside(task_))
      for_trees(
          [&](std::uint32_t tree, const Tree& view, const std::uint8_t* at) { deliver(tree, view, at); });
    else if (task_.delivery == Delivery::F64)
      sum_beside<double>(
          [&](const TreeDesc& desc, const Tree&) { return task_.wide_leaves + desc.first_leaf; });
    else
      sum_beside<float>([](const TreeDesc&, const Tree& tree) { return tree.leaves; });
  }

  /// Calls visit(tree's number, tree, its rows' slots among the leaves) for each tree. With few blocks
  /// several trees go down level by level beside each other, so that one's hops fill the time another's take.
  template <class Visit>
  FVM_INLINE void for_trees(const Visit& visit) {
    const std::uint32_t together = kMostBlocks / blocks_;
    const std::uint32_t end = task_.tree_range.end;
    for (std::uint32_t t = task_.tree_range.begin; t < end; t += together) {
      const std::uint32_t count = end - t < together ? end - t : together;
      Tree trees[kMostBlocks];
      for (std::uint32_t i = 0; i < count; ++i)
        trees[i] = TablesView::tree(task_.group, t - task_.first_tree + i);
      descend(trees, count);
      for (std::uint32_t i = 0; i < count; ++i) visit(t + i, trees[i], slots(i));
    }
  }

  /// Of the i-th of the trees that are walked together.
  FVM_INLINE std::uint8_t* slots(std::uint32_t i) { return at_ + std::size_t{i} * blocks_ * kCodeRows; }

  /// Sums of output k are at sums + k * kRows. leaves_of(tree's record, tree) are as the sums.
  template <class Score, class LeavesOf>
  FVM_INLINE void sum_beside(const LeavesOf& leaves_of) {
    alignas(64) Score sums[kMostSumBytes / sizeof(Score)];
    const std::size_t kRows = blocks_ * kCodeRows;
    Score* const out = reinterpret_cast<Score*>(task_.out) + row_ * task_.width;
    for (std::size_t k = 0; k < task_.width; ++k) {
      for (std::size_t r = 0; r < rows_; ++r) sums[k * kRows + r] = out[r * task_.width + k];
      for (std::size_t r = rows_; r < kRows; ++r) sums[k * kRows + r] = 0;
    }
    const TreeDesc* const descs = task_.group.trees;
    for_trees([&](std::uint32_t t, const Tree& tree, const std::uint8_t* at) {
      const TreeDesc& desc = descs[t - task_.first_tree];
      Score* const to = sums + desc.output * kRows;
      const Score* const leaves = leaves_of(desc, tree);
      for (std::size_t i = 0; i < kRows; i += kLanes)
        Simd::add_leaves(to + i, leaves, desc.leaf_count, at + i);
    });
    for (std::size_t k = 0; k < task_.width; ++k)
      for (std::size_t r = 0; r < rows_; ++r) out[r * task_.width + k] = sums[k * kRows + r];
  }

  /// Anything else: row by row.
  void deliver(std::uint32_t tree, const Tree& view, const std::uint8_t* at) {
    float values[kMostRows];
    std::uint64_t numbers_at[kMostRows];
    const TreeDesc& desc = task_.group.trees[tree - task_.first_tree];
    for (std::uint32_t r = 0; r < rows_; ++r) {
      values[r] = view.leaves[at[r]];
      numbers_at[r] = std::uint64_t{desc.first_leaf} + at[r];
    }
    Deliver<Target>::run(task_, {tree, row_, 1, rows_, values, numbers_at});
  }

  /// Takes every row from the roots to its leaves: their slots in the levels below the last.
  void descend(const Tree* trees, std::uint32_t count) {
    std::uint32_t depth = 0;
    for (std::uint32_t i = 0; i < count; ++i) depth = std::max(depth, trees[i].depth);
    std::fill_n(at_, count * blocks_ * kCodeRows, std::uint8_t{0});
    for (std::uint32_t level = 0; level < depth; ++level)
      for (std::uint32_t i = 0; i < count; ++i)
        if (level < trees[i].depth) hop(trees[i], level, slots(i));
  }

  /// Chooses the code for a level's shape by one jump: branches one after the other would be mispredicted one
  /// after the other.
  FVM_INLINE void hop(const Tree& tree, std::uint32_t number, std::uint8_t* slots) {
    const TableLevel& level = tree.level(number);
    const LevelTables tables(tree.lines, level);
    const unsigned size =
        (level.slots > 16 ? 1u : 0u) + (level.slots > 64 ? 1u : 0u) + (level.slots > 128 ? 1u : 0u);
    const unsigned columns =
        (level.columns > 1 ? 1u : 0u) + (level.columns > 4 ? 1u : 0u) + (level.columns > 8 ? 1u : 0u);
    (this->*kHops[(columns * 4 + size) * 2 + level.complete])(tables, level.columns, slots);
  }

  using Hop = void (TablesWalk::*)(const LevelTables&, unsigned columns, std::uint8_t* slots);

  template <unsigned... Shapes>
  static constexpr std::array<Hop, sizeof...(Shapes)> hops(std::integer_sequence<unsigned, Shapes...>) {
    constexpr unsigned sizes[] = {16, 64, 128, 256};
    return {&TablesWalk::hop_shape<sizes[Shapes / 2 % 4], Shapes % 2 == 1, Shapes / 8>...};
  }

  /// Columns: 0 for one column, 1 for up to 4, 2 for up to 8, 3 for more.
  template <unsigned Size, bool Complete, unsigned Columns>
  void hop_shape(const LevelTables& tables, unsigned columns, std::uint8_t* slots) {
    if constexpr (Columns == 0)
      hop_over<Size, Complete>(tables, slots, [&](Bytes, const std::uint8_t* codes) {
        return Simd::load(codes + tables.list[0]);
      });
    else
      hop_by_column<Size, Complete>(tables, slots, [&](Bytes column, const std::uint8_t* codes) {
        if constexpr (Columns == 1) return pick_4(column, codes, tables.list);
        if constexpr (Columns == 2) return pick_8(column, codes, tables.list);
        if constexpr (Columns == 3) return pick(column, codes, tables.list, columns);
      });
  }

  template <unsigned Size, bool Complete, class Pick>
  FVM_INLINE void hop_by_column(const LevelTables& tables, std::uint8_t* slots, const Pick& pick_code) {
    const typename Simd::template Table<Size> column(tables.column);
    hop_over<Size, Complete>(
        tables, slots, [&](Bytes at, const std::uint8_t* codes) { return pick_code(column[at], codes); });
  }

  /// One hop of every row; get(at, codes) gives the codes that places `at` test.
  template <unsigned Size, bool Complete, class Get>
  FVM_INLINE void hop_over(const LevelTables& tables, std::uint8_t* slots, const Get& get) {
    const typename Simd::template Table<Size> code(tables.code);
    const typename Simd::template Table<Complete ? 16 : Size> child(Complete ? tables.code : tables.child);
    const std::uint8_t* codes = task_.codes + code_offset(row_, task_.columns);
    const std::size_t block_bytes = std::size_t{task_.columns} * kCodeRows;
    for (std::uint32_t b = 0; b < blocks_; ++b, codes += block_bytes)
      for (unsigned part = 0; part < kCodeRows; part += kLanes) {
        std::uint8_t* const state = slots + b * kCodeRows + part;
        const Bytes at = Simd::load(state);
        const Bytes x = get(at, codes + part);
        Bytes next;
        if constexpr (Complete)
          next = Simd::add(at, at);
        else
          next = child[at];
        Simd::store(state, Simd::step(next, x, code[at]));
      }
  }

  // The code of each lane's column, of a list of columns: a tree of selects by the bits of its number.

  FVM_INLINE static Bytes pick_4(Bytes column, const std::uint8_t* codes, const std::uint32_t* list) {
    return pick_4(Simd::has_bit(column, 1), Simd::has_bit(column, 2), codes, list);
  }

  FVM_INLINE static Bytes pick_4(typename Simd::Mask one, typename Simd::Mask two, const std::uint8_t* codes,
                                 const std::uint32_t* list) {
    const Bytes low = Simd::select(one, Simd::load(codes + list[0]), Simd::load(codes + list[1]));
    const Bytes high = Simd::select(one, Simd::load(codes + list[2]), Simd::load(codes + list[3]));
    return Simd::select(two, low, high);
  }

  FVM_INLINE static Bytes pick_8(Bytes column, const std::uint8_t* codes, const std::uint32_t* list) {
    const auto one = Simd::has_bit(column, 1), two = Simd::has_bit(column, 2);
    return Simd::select(Simd::has_bit(column, 4), pick_4(one, two, codes, list),
                        pick_4(one, two, codes, list + 4));
  }

  FVM_INLINE static Bytes pick(Bytes column, const std::uint8_t* codes, const std::uint32_t* list,
                               unsigned count) {
    const auto one = Simd::has_bit(column, 1), two = Simd::has_bit(column, 2),
               four = Simd::has_bit(column, 4);
    const auto eight = [&](unsigned i) {
      return Simd::select(four, pick_4(one, two, codes, list + i), pick_4(one, two, codes, list + i + 4));
    };
    Bytes found = eight(0);
    unsigned i = 8;
    for (; i + 4 < count; i += 8)
      found = Simd::select(Simd::in_eight(column, static_cast<std::uint8_t>(i)), found, eight(i));
    if (i < count)
      found = Simd::select(Simd::in_eight(column, static_cast<std::uint8_t>(i)), found,
                           pick_4(one, two, codes, list + i));
    return found;
  }

  __attribute__((noinline)) static void by_row(const WalkTask& task, std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t row = begin; row < end; ++row) {
      const std::uint8_t* const codes = task.codes + code_offset(row, task.columns);
      for (std::uint32_t t = task.tree_range.begin; t < task.tree_range.end; ++t) {
        const Tree tree = TablesView::tree(task.group, t - task.first_tree);
        std::uint32_t at = 0;
        while (!TablesView::is_leaf(tree, at)) at = TablesView::next<Target>(tree, at, codes);
        const float value = TablesView::value(tree, at);
        const std::uint64_t number = TablesView::number_at(tree, task.group.trees[t - task.first_tree], at);
        Deliver<Target>::run(task, {t, row, 1, 1, &value, &number});
      }
    }
  }

  static constexpr auto kHops = hops(std::make_integer_sequence<unsigned, 32>{});

  const WalkTask& task_;
  std::uint32_t row_, rows_, blocks_;
  alignas(64) std::uint8_t at_[kMostRows];  ///< each row's slot in each tree that is walked
};

}  // namespace forestvm::host
