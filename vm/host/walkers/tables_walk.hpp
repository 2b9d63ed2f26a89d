// The walker of the tables layout: a vector of rows takes a step by looking its slots up in tables that lie in
// registers. No branch depends on the data, only the indices that are looked up do, so nothing is mispredicted. In a
// block of rows it goes through one tree after the other; the block's sums are kept in a buffer until the last
// tree.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include <forestvm/core/layout/tree_tables.hpp>

#include "vm/host/simd/transpose.hpp"
#include "vm/host/walkers/table_lookups.hpp"
#include "vm/host/walkers/walk.hpp"

namespace forestvm::host {

/// Stores the leaves `at` of a tree for `slots` rows from `row` on, by adding them to -0.0.
template <class Target, class Score>
FVM_ONE_COPY void store_vectors(const WalkTask& task, const TreeDesc& desc, std::uint32_t row,
                                std::uint32_t slots, const Score* leaves, const std::uint8_t* at) {
  const LeafOffsets offsets(task.width, task.row_count);
  for (std::uint32_t r = 0; r < slots; r += kCodeRows) {
    const std::uint32_t count = std::min<std::uint32_t>(slots - r, kCodeRows);
    Score* const to = reinterpret_cast<Score*>(task.out) + offsets.at(row + r, desc.number);
    std::fill_n(to, count, Score{-0.0});
    Target::Codes::add_leaves(to, leaves, desc.leaf_count, at + r, count);
  }
}

/// Copies sums as transpose() does.
template <class Target, class Score>
FVM_ONE_COPY void transpose_sums(const Score* from, std::size_t stride, std::size_t rows, std::size_t count,
                                 Score* to, std::size_t width) {
  transpose(from, stride, rows, count, to, width);
}

/// Walks tables. View is TablesView or TreeTablesView.
template <class Target, class View>
class TablesWalk {
  using Simd = typename Target::Codes;
  using Bytes = typename Simd::Bytes;
  using Tree = TablesView::Tree;
  static constexpr unsigned kLanes = Simd::kLanes;
  static constexpr unsigned kMaxBlocks = 8;  ///< Most blocks of rows that are walked together.
  static constexpr unsigned kMaxRows = kMaxBlocks * kCodeRows;
  static constexpr unsigned kMaxTrees = 16;  ///< Most trees that are walked together.
  static constexpr bool kTreeTables = std::is_same_v<View, TreeTablesView>;
  static constexpr unsigned kMaxByRow = 32;   ///< Most columns whose codes are looked up row by row.
  static constexpr unsigned kHalfBlock = 32;  ///< Rows of a half block, which is read without the other half.
  static_assert(kLanes <= kHalfBlock || kLanes == 2 * kHalfBlock);
  /// Most bytes of the buffer of sums.
  static constexpr std::size_t kMaxSumBytes = std::size_t{64} << 10;

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

  TablesWalk(const WalkTask& task, std::uint32_t row, std::uint32_t rows)
      : task_(task),
        row_(row),
        rows_(rows),
        blocks_((rows + kCodeRows - 1) / kCodeRows),
        codes_(task.codes + code_offset(row, task.columns)),
        slots_(slots_for(rows)) {}

  static std::uint32_t slots_for(std::uint32_t rows) {
    if (by_two(rows)) return kLanes / 2;
    const std::uint32_t whole = rows <= kCodeRows ? kLanes : kCodeRows;
    return (rows + whole - 1) / whole * whole;
  }

  /// Returns whether there are so few rows that a vector holds them for two trees.
  static bool by_two(std::uint32_t rows) { return kLanes > kMinLanes && 2 * rows <= kLanes; }

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

  /// Calls visit(tree's number, tree, its rows' slots among the leaves) for each tree.
  template <class Visit>
  FVM_INLINE void for_trees(const Visit& visit) {
    const auto levels_of_tests = [&](std::uint32_t t) {
      const TreeDesc& desc = task_.group.trees[t - task_.first_tree];
      return !kTreeTables && TablesView::is_oblivious(desc) ? desc.depth : 0;
    };
    const std::uint32_t end = task_.tree_range.end;
    for (std::uint32_t t = task_.tree_range.begin, next; t < end; t = next) {
      const std::uint32_t levels = levels_of_tests(t);
      for (next = t + 1; next < end && levels_of_tests(next) == levels;) ++next;
      for_alike(t, next, levels, visit);
    }
  }

  /// Walks trees that are alike: all oblivious or none, and with the same number of levels.
  template <class Visit>
  void for_alike(std::uint32_t begin, std::uint32_t end, std::uint32_t levels, const Visit& visit) {
    if constexpr (kLanes > kMinLanes)
      if (by_two(rows_)) return for_two(begin, end, levels, visit);
    for_walks<OneTree<Target>>(begin, end, levels, visit);
  }

  template <class Visit>
  FVM_INLINE void for_two(std::uint32_t begin, std::uint32_t end, std::uint32_t levels, const Visit& visit) {
    if (levels != 0 || task_.columns > kMaxByRow)
      return for_walks<TwoTrees<Target>>(begin, end, levels, visit);
    if (task_.columns <= 8) return for_two_by_row<8>(begin, end, visit);
    if (task_.columns <= 16) return for_two_by_row<16>(begin, end, visit);
    for_two_by_row<kMaxByRow>(begin, end, visit);
  }

  template <unsigned Columns, class Visit>
  FVM_INLINE void for_two_by_row(std::uint32_t begin, std::uint32_t end, const Visit& visit) {
    using Walk = TwoTreesByRow<Target, Columns>;
    static_assert(Walk::ByRow::kBytes <= sizeof by_row_);
    if (!has_by_row_) Walk::ByRow::transpose(codes_, task_.columns, by_row_);
    has_by_row_ = true;
    for_walks<Walk>(begin, end, 0, visit);
  }

  /// Walks trees that are alike. With few rows many trees go down level by level beside each other, so that the
  /// steps of one fill the time that another's take. Walk is the type of the tables in which a vector of rows is
  /// looked up: OneTree, TwoTrees or TwoTreesByRow.
  template <class Walk, class Visit>
  FVM_INLINE void for_walks(std::uint32_t begin, std::uint32_t end, std::uint32_t levels,
                            const Visit& visit) {
    const std::uint32_t together = std::min(kMaxRows / slots_, kMaxTrees);
    for (std::uint32_t t = begin; t < end; t += together) {
      const std::uint32_t count = std::min(end - t, together);
      const std::uint32_t first = t - task_.first_tree;
      walk_together<Walk>(first, count, levels);
      for (std::uint32_t i = 0; i < count; ++i)
        visit(t + i, TablesView::tree(task_.group, first + i), at_ + std::size_t{i} * slots_);
    }
  }

  /// Takes the rows through up to kMaxTrees trees that are alike, from the group's tree `first` on. It is apart from
  /// for_walks so that there is one copy of it and not one for each way to visit.
  template <class Walk>
  [[gnu::noinline]] void walk_together(std::uint32_t first, std::uint32_t count, std::uint32_t levels) {
    const std::uint32_t walks = (count + Walk::kTrees - 1) / Walk::kTrees;
    Walk of[kMaxTrees / Walk::kTrees];
    for (std::uint32_t i = 0; i < walks; ++i)
      of[i] = Walk(task_.group, first + i * Walk::kTrees, first + count - 1);
    if constexpr (kTreeTables)
      descend_trees(of, walks);
    else if (levels != 0)
      for (std::uint32_t i = 0; i < walks; ++i)
        descend_oblivious(of[i], levels, at_ + std::size_t{i} * slots_ * Walk::kTrees);
    else
      descend(of, walks);
  }

  /// Adds leaves to plain sums in a buffer. The buffer holds the sums of one output after the other: the sums of
  /// output k begin at sums + k * slots_. leaves_of(tree's record, tree) returns the tree's leaves in the type of
  /// the sums.
  template <class Score, class LeavesOf>
  FVM_INLINE void sum_beside(const LeavesOf& leaves_of) {
    alignas(64) Score sums[kMaxSumBytes / sizeof(Score)];
    const std::size_t stride = slots_;
    Score* const out = reinterpret_cast<Score*>(task_.out) + row_ * task_.width;
    transpose_sums<Target>(out, task_.width, rows_, task_.width, sums, stride);
    // Lanes without a row are added to as well. Nobody reads their sums, but they must have been written.
    for (std::size_t k = 0; k < task_.width; ++k)
      for (std::size_t r = rows_; r < stride; ++r) sums[k * stride + r] = 0;
    const TreeDesc* const descs = task_.group.trees;
    for_trees([&](std::uint32_t t, const Tree& tree, const std::uint8_t* at) {
      const TreeDesc& desc = descs[t - task_.first_tree];
      Simd::add_leaves(sums + desc.output * stride, leaves_of(desc, tree), desc.leaf_count, at, slots_);
    });
    transpose_sums<Target>(sums, stride, task_.width, rows_, out, task_.width);
  }

  /// Returns whether the vectors of rows fit the room that a tree's leaves have in an accumulator.
  static bool stores_vectors(const WalkTask& task, std::uint32_t slots) {
    const bool per_tree = task.delivery == Delivery::PerTree || task.delivery == Delivery::PerTree64;
    return per_tree &&
           std::min<std::uint32_t>(slots, kCodeRows) <= LeafOffsets(task.width, task.row_count).stride;
  }

  /// Delivers a tree's leaves in tasks that sum_beside does not serve.
  void deliver(std::uint32_t tree, const Tree& view, const std::uint8_t* at) {
    if (stores_vectors(task_, slots_)) {
      const TreeDesc& stored = task_.group.trees[tree - task_.first_tree];
      if (task_.delivery == Delivery::PerTree)
        return store_vectors<Target>(task_, stored, row_, slots_, view.leaves, at);
      return store_vectors<Target>(task_, stored, row_, slots_, task_.wide_leaves + stored.first_leaf, at);
    }
    const TreeDesc& desc = task_.group.trees[tree - task_.first_tree];
    if (task_.delivery == Delivery::LeafNumber) return store_numbers(desc, at);
    float values[kMaxRows];
    std::uint64_t numbers_at[kMaxRows];
    for (std::uint32_t r = 0; r < rows_; ++r) {
      values[r] = view.leaves[at[r]];
      numbers_at[r] = std::uint64_t{desc.first_leaf} + at[r];
    }
    Deliver<Target>::run(task_, {tree, row_, 1, rows_, values, numbers_at});
  }

  /// Stores the numbers of a tree's leaves, row by row.
  void store_numbers(const TreeDesc& desc, const std::uint8_t* at) {
    const std::uint32_t* const numbers = task_.numbers + desc.first_leaf;
    std::uint32_t* out = reinterpret_cast<std::uint32_t*>(task_.out) + row_ * task_.width + desc.number;
    for (std::uint32_t r = 0; r < rows_; ++r, out += task_.width) *out = numbers[at[r]];
  }

  /// Takes every row from the roots to its leaves. The rows' slots are then the leaves' numbers.
  template <class Walk>
  void descend(const Walk* walks, std::uint32_t count) {
    const std::uint32_t walk_slots = slots_ * Walk::kTrees;
    std::uint32_t depth = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint8_t* const slots = at_ + std::size_t{i} * walk_slots;
      depth = std::max(depth, walks[i].depth());
      if (walks[i].has_top()) {
        step_top(walks[i], slots);
      } else {
        std::fill_n(slots, walk_slots, std::uint8_t{0});
        for (std::uint32_t level = 0; level < std::min(walks[i].depth(), kTopLevels); ++level)
          step_level<Walk>(walks[i].level(level), slots);
      }
    }
    for (std::uint32_t level = kTopLevels; level < depth; ++level)
      for (std::uint32_t i = 0; i < count; ++i)
        if (level < walks[i].depth())
          step_level<Walk>(walks[i].level(level), at_ + std::size_t{i} * walk_slots);
  }

  /// Takes the walks through tree tables. All trees take as many steps as the deepest: steps that move nothing
  /// cost less than a loop whose end the processor does not foresee.
  template <class Walk>
  void descend_trees(const Walk* walks, std::uint32_t count) {
    const std::uint32_t walk_slots = slots_ * Walk::kTrees;
    std::uint32_t depth = 0;
    for (std::uint32_t i = 0; i < count; ++i) depth = std::max(depth, walks[i].depth());
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint8_t* const slots = at_ + std::size_t{i} * walk_slots;
      if (walks[i].depth() == 0)
        std::fill_n(slots, walk_slots, std::uint8_t{0});
      else
        step_tree<Walk>(walks[i].level(0), depth, slots);
    }
  }

  /// Takes the walks through an oblivious tree. The outcomes of its levels' tests are the bits of a leaf's
  /// number, so nothing is looked up.
  template <class Walk>
  void descend_oblivious(const Walk& walk, std::uint32_t levels, std::uint8_t* slots) {
    using Whole = void (TablesWalk::*)(const Walk&, std::uint8_t* slots);
    static constexpr Whole kWhole[] = {// by depth: a tree of 256 leaves has 8 levels of tests
                                       &TablesWalk::steps<Walk, 1>, &TablesWalk::steps<Walk, 2>,
                                       &TablesWalk::steps<Walk, 3>, &TablesWalk::steps<Walk, 4>,
                                       &TablesWalk::steps<Walk, 5>, &TablesWalk::steps<Walk, 6>,
                                       &TablesWalk::steps<Walk, 7>, &TablesWalk::steps<Walk, 8>};
    (this->*kWhole[levels - 1])(walk, slots);
  }

  template <class Walk, unsigned Depth>
  void steps(const Walk& walk, std::uint8_t* slots) {
    typename Walk::Step steps[Depth];
    for (unsigned i = 0; i < Depth; ++i)
      steps[i] = typename Walk::Step(walk.level(i), static_cast<std::uint8_t>(1u << (Depth - 1 - i)));
    for_vectors<Walk>(
        slots, [&](std::uint8_t * state, const Codes& codes) __attribute__((always_inline)) {
          Bytes at = Simd::all(0);
          for (unsigned i = 0; i < Depth; ++i) at = steps[i](at, codes.by_column);
          Simd::store(state, at);
        });
  }

  template <class Walk>
  using LevelStep = void (TablesWalk::*)(const typename Walk::Level&, std::uint8_t* slots);

  /// Chooses the code for a level's shape by one jump: several branches would be mispredicted several times.
  template <class Walk>
  FVM_INLINE void step_level(const typename Walk::Level& level, std::uint8_t* slots) {
    static constexpr auto kSteps =
        level_steps<Walk>(std::make_integer_sequence<unsigned, LevelShape::kCount>{});
    (this->*kSteps[Walk::shape(level)])(level, slots);
  }

  template <class Walk, unsigned... Shapes>
  static constexpr std::array<LevelStep<Walk>, sizeof...(Shapes)> level_steps(
      std::integer_sequence<unsigned, Shapes...>) {
    return {&TablesWalk::step_shape<Walk, LevelShape::of(Shapes).size, LevelShape::of(Shapes).columns,
                                    code_kind(LevelShape::of(Shapes))>...};
  }

  /// Returns the kind of level whose code walks the levels of a shape. In vectors of 16 bytes a lookup among 64 slots
  /// or more is so long that the two instructions that keep ended walks in place cost nothing beside it. So levels
  /// where no walk has ended share the code of those where some have.
  static constexpr LevelKind code_kind(LevelShape shape) {
    const bool is_long = kLanes == 16 && shape.size >= 64;
    return is_long && shape.kind == LevelKind::Mixed ? LevelKind::Later : shape.kind;
  }

  template <class Walk, unsigned Size, unsigned Columns, LevelKind Kind>
  void step_shape(const typename Walk::Level& level, std::uint8_t* slots) {
    const ShapeStep<Walk, Size, Columns, Kind> step(level);
    for_vectors<Walk>(
        slots, [&](std::uint8_t * state, const Codes& codes)
                   __attribute__((always_inline)) { Simd::store(state, step(Simd::load(state), codes)); });
  }

  /// Takes the first kTopLevels steps from the roots.
  template <class Walk>
  void step_top(const Walk& walk, std::uint8_t* slots) {
    static_assert(kTopLevels == 3);
    const ShapeStep<Walk, 16, 0, LevelKind::Tests> first(walk.level(0));
    const ShapeStep<Walk, 16, 1, LevelKind::Tests> second(walk.level(1)), third(walk.level(2));
    for_vectors<Walk>(
        slots, [&](std::uint8_t * state, const Codes& codes) __attribute__((always_inline)) {
          const Bytes at = first(Simd::all(0), codes);
          Simd::store(state, third(second(at, codes), codes));
        });
  }

  template <class Walk>
  using TreeSteps = void (TablesWalk::*)(const typename Walk::Level&, std::uint32_t depth,
                                         std::uint8_t* slots);

  template <class Walk>
  FVM_INLINE void step_tree(const typename Walk::Level& level, std::uint32_t depth, std::uint8_t* slots) {
    constexpr unsigned kShapes = LevelShape::tables(kMaxTreeSlots, kMaxTreeSlots) + 1;
    static constexpr auto kSteps = tree_steps<Walk>(std::make_integer_sequence<unsigned, kShapes>{});
    (this->*kSteps[LevelShape::tables(Walk::slots(level), Walk::columns(level))])(level, depth, slots);
  }

  template <class Walk, unsigned... Shapes>
  static constexpr std::array<TreeSteps<Walk>, sizeof...(Shapes)> tree_steps(
      std::integer_sequence<unsigned, Shapes...>) {
    return {&TablesWalk::tree_shape_steps<Walk, LevelShape::of(4 * Shapes).size,
                                          LevelShape::of(4 * Shapes).columns>...};
  }

  template <class Walk, unsigned Size, unsigned Columns>
  void tree_shape_steps(const typename Walk::Level& level, std::uint32_t depth, std::uint8_t* slots) {
    const ShapeStep<Walk, Size, Columns, LevelKind::Retiring> step(level);
    for_vectors<Walk>(
        slots, [&](std::uint8_t * state, const Codes& codes) __attribute__((always_inline)) {
          Bytes at = Simd::all(0);
          for (std::uint32_t i = 0; i < depth; ++i) at = step(at, codes);
          Simd::store(state, step.leaf(at));
        });
  }

  /// Calls visit(slots, codes) for each vector of rows.
  template <class Walk, class Visit>
  FVM_INLINE void for_vectors(std::uint8_t* slots, const Visit& visit) {
    if constexpr (Walk::kTrees > 1) return visit(slots, Codes{codes_, by_row_});
    const std::uint8_t* codes = codes_;
    const std::size_t block_bytes = std::size_t{task_.columns} * kCodeRows;
    const std::uint32_t in_block = std::min(slots_, std::uint32_t{kCodeRows});
    for (std::uint32_t b = 0; b < blocks_; ++b, codes += block_bytes, slots += kCodeRows)
      for (unsigned part = 0; part < in_block; part += kLanes)
        visit(slots + part, Codes{codes + part, nullptr});
  }

  /// The codes of a vector's rows.
  struct Codes {
    const std::uint8_t* by_column;
    const std::uint8_t* by_row;  ///< Codes row by row; null if there are none.
  };

  /// A step with a level's tables in registers.
  template <class Walk, unsigned Size, unsigned Columns, LevelKind Kind>
  class ShapeStep {
    template <unsigned Bytes>
    using Table = typename Walk::template Table<Bytes>;
    // A table that is not read has the smallest size.
    static constexpr unsigned kColumnSize = Columns == 0 ? 16 : Size;
    static constexpr unsigned kChildSize = Kind == LevelKind::Tests ? 16 : Size;
    static constexpr unsigned kBySize = Kind == LevelKind::Retiring ? Size : 16;

   public:
    FVM_INLINE explicit ShapeStep(const typename Walk::Level& level)
        : lookups_(level),
          columns_(Walk::columns(level)),
          slots_(lookups_.slots()),
          code_(lookups_.template code<Size>()),
          column_(lookups_.template column<kColumnSize>()),
          child_(lookups_.template child<kChildSize>()),
          by_(lookups_.template by<kBySize>()) {}

    FVM_INLINE Bytes operator()(Bytes at, const Codes& codes) const {
      const auto four = [&](unsigned i) __attribute__((always_inline)) {
        return lookups_.tested(codes.by_column, i);
      };
      Bytes x, next;
      if constexpr (Walk::is_by_row(Columns))
        x = lookups_.tested_by_row(codes.by_row, column_[at]);
      else if constexpr (Columns == 0)
        x = four(0)(0);
      else
        x = pick<Columns>(column_[at], four, columns_);
      if constexpr (Kind == LevelKind::Tests)
        next = Simd::add(at, at);
      else
        next = child_[at];
      if constexpr (Kind == LevelKind::Retiring)
        next = Simd::step(next, x, code_[at], by_[at]);
      else
        next = Simd::step(next, x, code_[at]);
      return Kind < LevelKind::Later ? next : Simd::select(Simd::at_least(at, slots_), next, at);
    }

    /// Returns the leaves' numbers for walks through tree tables that have ended.
    FVM_INLINE Bytes leaf(Bytes at) const { return Simd::subtract(at, slots_); }

   private:
    typename Walk::template Lookups<Columns> lookups_;
    unsigned columns_;
    Bytes slots_;  ///< Number of slots, in each lane: a walk whose slot is none of these has ended.
    Table<Size> code_;
    Table<kColumnSize> column_;
    Table<kChildSize> child_;
    Table<kBySize> by_;
  };

  /// Returns the code of each lane's column, which is given by its number in a list of columns. It is a tree
  /// of selects by the bits of that number. four(i)(j) returns the codes of the list's (i + j)-th column, j <
  /// 4.
  template <unsigned Columns, class Four>
  FVM_INLINE static Bytes pick(Bytes column, const Four& four, unsigned count) {
    const auto one = Simd::has_bit(column, 1), two = Simd::has_bit(column, 2);
    const auto pick_4 = [&](unsigned i) __attribute__((always_inline)) {
      const auto get = four(i);
      const Bytes low = Simd::select(one, get(0), get(1));
      return Simd::select(two, low, Simd::select(one, get(2), get(3)));
    };
    if constexpr (Columns == 1) return pick_4(0);
    const auto bit_4 = Simd::has_bit(column, 4);
    const auto pick_8 = [&](unsigned i) __attribute__((always_inline)) {
      const Bytes low = pick_4(i);
      return Simd::select(bit_4, low, pick_4(i + 4));
    };
    Bytes found = pick_8(0);
    if constexpr (Columns == 2) return found;
    unsigned i = 8;
    for (; i + 4 < count; i += 8)
      found = Simd::select(Simd::in_eight(column, static_cast<std::uint8_t>(i)), found, pick_8(i));
    if (i < count)
      found = Simd::select(Simd::in_eight(column, static_cast<std::uint8_t>(i)), found, pick_4(i));
    return found;
  }

  __attribute__((noinline)) static void by_row(const WalkTask& task, std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t row = begin; row < end; ++row) {
      const std::uint8_t* const codes = task.codes + code_offset(row, task.columns);
      for (std::uint32_t t = task.tree_range.begin; t < task.tree_range.end; ++t) {
        const Tree tree = View::tree(task.group, t - task.first_tree);
        std::uint32_t at = 0;
        while (!TablesView::is_leaf(tree, at)) at = TablesView::next<Target>(tree, at, codes);
        const float value = TablesView::value(tree, at);
        const std::uint64_t number = TablesView::number_at(tree, task.group.trees[t - task.first_tree], at);
        Deliver<Target>::run(task, {t, row, 1, 1, &value, &number});
      }
    }
  }

  const WalkTask& task_;
  std::uint32_t row_, rows_, blocks_;
  const std::uint8_t* codes_;  ///< Codes of the first block.
  /// Number of slots that are kept for each tree: one for each row, and for each lane without a row.
  std::uint32_t slots_;
  bool has_by_row_ = false;
  /// The codes row by row, if rows and columns are few.
  alignas(64) std::uint8_t by_row_[kMaxByRow * kHalfBlock];
  alignas(64) std::uint8_t at_[kMaxRows];  ///< Slot of each row in each tree that is walked.
};

}  // namespace forestvm::host
