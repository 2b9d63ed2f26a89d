// The way down tables, which the layouts of tables share: a vector of rows takes a step by looking its slots up in
// tables that lie in registers. No branch depends on the data, only the indices that are looked up do, so nothing is
// mispredicted.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include <forestvm/core/layout/tree_tables.hpp>

#include "vm/host/walkers/table_lookups.hpp"
#include "vm/host/walkers/walk.hpp"

namespace forestvm::host {

/// Takes up to kMaxRows rows down the tables of trees. It knows nothing of leaves, so that there is one copy of it for
/// tables and for top tables. kTreeTables says whether the trees are tree tables.
template <class Target, bool kTreeTables>
class TablesDescent {
  using Simd = typename Target::Codes;
  using Bytes = typename Simd::Bytes;
  static constexpr unsigned kLanes = Simd::kLanes;
  static constexpr unsigned kMaxTrees = 16;  ///< Most trees that are walked together.
  static constexpr unsigned kMaxByRow = 32;  ///< Most columns whose codes are looked up row by row.

 protected:
  static constexpr unsigned kMaxBlocks = 8;  ///< Most blocks of rows that are walked together.
  static constexpr unsigned kMaxRows = kMaxBlocks * kCodeRows;
  static constexpr unsigned kHalfBlock = 32;  ///< Rows of a half block, which is read without the other half.
  static_assert(Target::Codes::kLanes <= kHalfBlock || Target::Codes::kLanes == 2 * kHalfBlock);

  TablesDescent(const WalkTask& task, std::uint32_t row, std::uint32_t rows, bool tops)
      : task_(task),
        row_(row),
        rows_(rows),
        blocks_((rows + kCodeRows - 1) / kCodeRows),
        codes_(task.codes + code_offset(row, task.columns)),
        slots_(slots_for(rows)),
        tops_(tops) {}

  static std::uint32_t slots_for(std::uint32_t rows) {
    if (by_two(rows)) return kLanes / 2;
    const std::uint32_t whole = rows <= kCodeRows ? kLanes : kCodeRows;
    return (rows + whole - 1) / whole * whole;
  }

  /// Returns whether there are so few rows that a vector holds them for two trees.
  static bool by_two(std::uint32_t rows) { return kLanes > kMinLanes && 2 * rows <= kLanes; }

  /// Calls visit(tree's number, its rows' slots among the leaves of its tables) for each tree.
  template <class Visit>
  FVM_INLINE void for_trees(const Visit& visit) {
    const auto levels_of_tests = [&](std::uint32_t t) {
      const TreeDesc& desc = task_.group.trees[t - task_.first_tree];
      return !kTreeTables && !tops_ && TablesView::is_oblivious(desc) ? desc.depth : 0;
    };
    const std::uint32_t end = task_.tree_range.end;
    for (std::uint32_t t = task_.tree_range.begin, next; t < end; t = next) {
      const std::uint32_t levels = levels_of_tests(t);
      for (next = t + 1; next < end && levels_of_tests(next) == levels;) ++next;
      for_alike(t, next, levels, visit);
    }
  }

  const WalkTask& task_;
  std::uint32_t row_, rows_, blocks_;
  const std::uint8_t* codes_;  ///< Codes of the first block.
  /// Number of slots that are kept for each tree: one for each row, and for each lane without a row.
  std::uint32_t slots_;

 private:
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
      for (std::uint32_t i = 0; i < count; ++i) visit(t + i, at_ + std::size_t{i} * slots_);
    }
  }

  /// Takes the rows through up to kMaxTrees trees that are alike, from the group's tree `first` on. It is apart from
  /// for_walks so that there is one copy of it and not one for each way to visit.
  template <class Walk>
  [[gnu::noinline]] void walk_together(std::uint32_t first, std::uint32_t count, std::uint32_t levels) {
    const std::uint32_t walks = (count + Walk::kTrees - 1) / Walk::kTrees;
    Walk of[kMaxTrees / Walk::kTrees];
    for (std::uint32_t i = 0; i < walks; ++i)
      of[i] = Walk(task_.group, first + i * Walk::kTrees, first + count - 1, tops_);
    if constexpr (kTreeTables)
      descend_trees(of, walks);
    else if (levels != 0)
      for (std::uint32_t i = 0; i < walks; ++i)
        descend_oblivious(of[i], levels, at_ + std::size_t{i} * slots_ * Walk::kTrees);
    else
      descend(of, walks);
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
    using Whole = void (TablesDescent::*)(const Walk&, std::uint8_t* slots);
    static constexpr Whole kWhole[] = {// by depth: a tree of 256 leaves has 8 levels of tests
                                       &TablesDescent::steps<Walk, 1>, &TablesDescent::steps<Walk, 2>,
                                       &TablesDescent::steps<Walk, 3>, &TablesDescent::steps<Walk, 4>,
                                       &TablesDescent::steps<Walk, 5>, &TablesDescent::steps<Walk, 6>,
                                       &TablesDescent::steps<Walk, 7>, &TablesDescent::steps<Walk, 8>};
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
  using LevelStep = void (TablesDescent::*)(const typename Walk::Level&, std::uint8_t* slots);

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
    return {&TablesDescent::step_shape<Walk, LevelShape::of(Shapes).size, LevelShape::of(Shapes).columns,
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
  using TreeSteps = void (TablesDescent::*)(const typename Walk::Level&, std::uint32_t depth,
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
    return {&TablesDescent::tree_shape_steps<Walk, LevelShape::of(4 * Shapes).size,
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

  bool
      tops_;  ///< True if the trees are of the layout of top tables, false if they are tables or tree tables.
  bool has_by_row_ = false;
  /// The codes row by row, if rows and columns are few.
  alignas(64) std::uint8_t by_row_[kMaxByRow * kHalfBlock];
  alignas(64) std::uint8_t at_[kMaxRows];  ///< Slot of each row in each tree that is walked.
};

}  // namespace forestvm::host
