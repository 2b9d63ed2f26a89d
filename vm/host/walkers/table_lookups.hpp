// The tables in which a vector of rows is looked up at a level of the tables layout: the tables of one tree or, if
// there are so few rows that a vector has room for them twice, the tables of two trees beside each other.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include <forestvm/core/layout/tables.hpp>
#include <forestvm/core/layout/top_tables.hpp>

namespace forestvm::host {

/// The number of lanes up to which vectors walk one tree only: few rows fill them.
inline constexpr unsigned kMinLanes = 32;

/// The template parameters of the code that walks a level.
struct LevelShape {
  static constexpr unsigned kSizes[] = {16, 32, 64, 128};
  static constexpr LevelKind kKinds[] = {LevelKind::Tests, LevelKind::Mixed, LevelKind::Later,
                                         LevelKind::Retiring};
  static constexpr unsigned kCount = 4 * 4 * 4;

  unsigned size;     ///< Size of its tables, in slots.
  unsigned columns;  ///< Class of the number of columns. 0: one; 1: up to 4; 2: up to 8; 3: more.
  LevelKind kind;    ///< Kind of the level, which has tables.

  static constexpr LevelShape of(unsigned number) {
    return {kSizes[number / 16], number / 4 % 4, kKinds[number % 4]};
  }
  FVM_INLINE static unsigned number(unsigned slots, unsigned columns, LevelKind kind) {
    return tables(slots, columns) * 4 +
           (static_cast<unsigned>(kind) - static_cast<unsigned>(LevelKind::Tests));
  }
  /// Returns number() / 4, which is the same for all kinds of levels.
  FVM_INLINE static constexpr unsigned tables(unsigned slots, unsigned columns) {
    const unsigned size = bits((slots - 1) | 15u) - 4;
    return size * 4 + (kColumnClasses >> (4 * bits(columns - 1)) & 3u);
  }

 private:
  FVM_INLINE static constexpr unsigned bits(unsigned value) {
    return static_cast<unsigned>(std::bit_width(value));
  }
  /// A table of eight digits of 4 bits, so that a shift finds a class without a branch or a load: digit i is the class
  /// of the numbers of columns for which columns - 1 has i bits. A level has at most 128 columns.
  static constexpr std::uint32_t kColumnClasses = [] {
    std::uint32_t digits = 0;
    for (unsigned i = 1; i < 8; ++i) {
      const unsigned most = 1u << i;  // columns of this digit
      digits |= (most <= 4 ? 1u : most <= 8 ? 2u : 3u) << (4 * i);
    }
    return digits;
  }();
};

/// The number of levels at the top of a tree that are walked together if all are complete.
inline constexpr unsigned kTopLevels = 3;

FVM_INLINE bool has_complete_top(const TablesView::Tree& tree) {
  return tree.depth >= kTopLevels && tree.level(kTopLevels - 1).kind == LevelKind::Tests;
}

/// Returns the tables of a tree. `tops` says that its group has the layout topTables, and not another one of tables.
FVM_INLINE TablesView::Tree tables_of(const GroupData& group, std::uint32_t tree, bool tops) {
  return tops ? TopTablesView::tree(group, tree).top : TablesView::tree(group, tree);
}

/// A level of a tree.
struct LevelOfTree {
  const TableLine* lines;  ///< First line of the tree.
  const TableLevel* level;
};

/// The contents of tables that levels leave out.
struct ImpliedTables {
  alignas(64) std::uint8_t zeros[kMaxTableSlots], ones[kMaxTableSlots], doubled[kMaxTableSlots];

  static constexpr ImpliedTables make() {
    ImpliedTables tables{};
    for (unsigned i = 0; i < kMaxTableSlots; ++i) {
      tables.ones[i] = 1;
      tables.doubled[i] = static_cast<std::uint8_t>(2 * i);
    }
    return tables;
  }
};

/// The tables of a level, for the code that walks levels of a shape. This code also walks levels with fewer columns and
/// levels of an earlier kind.
template <class Target, unsigned Columns>
struct ShapedTables {
  const std::uint8_t *list, *column, *code, *child, *by;
  std::uint32_t last_four;  ///< Offset of the last four columns in the list, in bytes.
  std::uint8_t slots;

  FVM_INLINE explicit ShapedTables(const LevelOfTree& at) {
    const TableLevel& level = *at.level;
    const std::uint32_t table = level.table_bytes();
    slots = static_cast<std::uint8_t>(level.slots);
    list = at.lines[level.line].bytes;
    last_four = level.list_bytes() - 16;
    code = list + (Columns <= 1 ? 16u : level.list_bytes());
    column = kImplied.zeros;
    if (Columns != 0 && level.columns > 1) {
      column = code;
      code += table;
    }
    child = level.all_tests() ? kImplied.doubled : code + table;
    by = level.retires() ? child + table : kImplied.ones;
  }
  /// Returns four columns of the list from the i-th on, or the last four if the list ends before it.
  FVM_INLINE const std::uint32_t* four(std::uint32_t i) const {
    const std::uint32_t byte = i * sizeof(std::uint32_t);
    return reinterpret_cast<const std::uint32_t*>(list + (Columns <= 1 ? 0 : std::min(byte, last_four)));
  }

 private:
  static constexpr ImpliedTables kImplied = ImpliedTables::make();
};

template <class Target>
class OneTree {
  using Simd = typename Target::Codes;

 public:
  static constexpr unsigned kTrees = 1;  ///< Trees in a vector.
  using Level = LevelOfTree;
  template <unsigned Size>
  using Table = typename Simd::template Table<Size>;

  template <unsigned Columns>
  class Lookups {
   public:
    FVM_INLINE explicit Lookups(const Level& level) : tables_(level) {}

    template <unsigned Size>
    FVM_INLINE Table<Size> code() const {
      return Table<Size>(tables_.code);
    }
    template <unsigned Size>
    FVM_INLINE Table<Size> column() const {
      return Table<Size>(tables_.column);
    }
    template <unsigned Size>
    FVM_INLINE Table<Size> child() const {
      return Table<Size>(tables_.child);
    }
    template <unsigned Size>
    FVM_INLINE Table<Size> by() const {
      return Table<Size>(tables_.by);
    }
    FVM_INLINE auto slots() const { return Simd::all(tables_.slots); }
    /// Returns a function of j that loads the rows' codes in the list's (i + j)-th column, j < 4.
    FVM_INLINE auto tested(const std::uint8_t* codes, unsigned i) const {
      const std::uint32_t* const list = tables_.four(i);
      return [=](unsigned j) __attribute__((always_inline)) { return Simd::load(codes + list[j]); };
    }

   private:
    ShapedTables<Target, Columns> tables_;
  };

  /// Takes one step down an oblivious tree: adds `bit` where a row goes right.
  class Step {
    using Bytes = typename Simd::Bytes;

   public:
    Step() = default;
    FVM_INLINE Step(const Level& at, std::uint8_t bit)
        : level_(at.level), code_(Simd::all(at.level->code())), bit_(Simd::all(bit)) {}
    FVM_INLINE Bytes operator()(Bytes at, const std::uint8_t* codes) const {
      return Simd::step(at, Simd::load(codes + level_->offset()), code_, bit_);
    }

   private:
    const TableLevel* level_;
    Bytes code_, bit_;
  };

  OneTree() = default;
  FVM_INLINE OneTree(const GroupData& group, std::uint32_t tree, std::uint32_t, bool tops)
      : tree_(tables_of(group, tree, tops)) {}

  FVM_INLINE std::uint32_t depth() const { return tree_.depth; }
  FVM_INLINE bool has_top() const { return has_complete_top(tree_); }
  FVM_INLINE Level level(std::uint32_t number) const { return {tree_.lines, &tree_.level(number)}; }
  FVM_INLINE static unsigned slots(const Level& at) { return at.level->slots; }
  FVM_INLINE static unsigned columns(const Level& at) { return at.level->columns; }
  FVM_INLINE static unsigned shape(const Level& at) {
    return LevelShape::number(slots(at), columns(at), at.level->kind);
  }
  /// Returns whether the rows' codes are looked up row by row in levels with this number of columns, as in
  /// LevelShape.
  static constexpr bool is_by_row(unsigned) { return false; }

 private:
  TablesView::Tree tree_;
};

/// Stands for a level below a tree's last one, where all walks have ended.
struct ArrivedLevel {
  TableLevel level;
  struct {
    std::uint32_t list[4];
    std::uint8_t code[kMaxTableSlots];
  } lines;
};

template <class Target>
class TwoTrees {
  using Simd = typename Target::Codes;

 public:
  static constexpr unsigned kTrees = 2;
  struct Level {
    LevelOfTree halves[2];
  };
  template <unsigned Size>
  using Table = typename Simd::template TwoTables<Size>;

  template <unsigned Columns>
  class Lookups {
   public:
    FVM_INLINE explicit Lookups(const Level& level) : halves_{Half(level.halves[0]), Half(level.halves[1])} {}

    template <unsigned Size>
    FVM_INLINE Table<Size> code() const {
      return {halves_[0].code, halves_[1].code};
    }
    template <unsigned Size>
    FVM_INLINE Table<Size> column() const {
      return {halves_[0].column, halves_[1].column};
    }
    template <unsigned Size>
    FVM_INLINE Table<Size> child() const {
      return {halves_[0].child, halves_[1].child};
    }
    template <unsigned Size>
    FVM_INLINE Table<Size> by() const {
      return {halves_[0].by, halves_[1].by};
    }
    FVM_INLINE auto slots() const { return Simd::halves(halves_[0].slots, halves_[1].slots); }
    FVM_INLINE auto tested(const std::uint8_t* codes, unsigned i) const {
      const std::uint32_t *const low = halves_[0].four(i), *const high = halves_[1].four(i);
      return [=](unsigned j) __attribute__((always_inline)) {
        return Simd::load_halves(codes + low[j], codes + high[j]);
      };
    }

   protected:
    FVM_INLINE const std::uint32_t* list(unsigned half) const { return halves_[half].four(0); }

   private:
    using Half = ShapedTables<Target, Columns>;
    Half halves_[2];
  };

  class Step {
    using Bytes = typename Simd::Bytes;

   public:
    Step() = default;
    FVM_INLINE Step(const Level& at, std::uint8_t bit)
        : low_(at.halves[0].level),
          high_(at.halves[1].level),
          code_(Simd::halves(low_->code(), high_->code())),
          bit_(Simd::all(bit)) {}
    FVM_INLINE Bytes operator()(Bytes at, const std::uint8_t* codes) const {
      return Simd::step(at, Simd::load_halves(codes + low_->offset(), codes + high_->offset()), code_, bit_);
    }

   private:
    const TableLevel *low_, *high_;
    Bytes code_, bit_;
  };

  TwoTrees() = default;
  /// Takes the trees `tree` and tree + 1. If `tree` is the last one, it is taken twice.
  FVM_INLINE TwoTrees(const GroupData& group, std::uint32_t tree, std::uint32_t last, bool tops) {
    for (unsigned i = 0; i < 2; ++i) trees_[i] = tables_of(group, std::min(tree + i, last), tops);
  }

  FVM_INLINE std::uint32_t depth() const { return std::max(trees_[0].depth, trees_[1].depth); }
  FVM_INLINE bool has_top() const { return has_complete_top(trees_[0]) && has_complete_top(trees_[1]); }
  FVM_INLINE Level level(std::uint32_t number) const { return {of(0, number), of(1, number)}; }
  FVM_INLINE static unsigned slots(const Level& at) {
    return std::max(at.halves[0].level->slots, at.halves[1].level->slots);
  }
  FVM_INLINE static unsigned columns(const Level& at) {
    return std::max(at.halves[0].level->columns, at.halves[1].level->columns);
  }
  FVM_INLINE static unsigned shape(const Level& at) {
    return LevelShape::number(slots(at), columns(at),
                              std::max(at.halves[0].level->kind, at.halves[1].level->kind));
  }
  static constexpr bool is_by_row(unsigned) { return false; }

 private:
  FVM_INLINE LevelOfTree of(unsigned i, std::uint32_t number) const {
    const TablesView::Tree& tree = trees_[i];
    const bool ended = number >= tree.depth;
    return {ended ? reinterpret_cast<const TableLine*>(&kEnded.lines) : tree.lines,
            ended ? &kEnded.level : &tree.level(number)};
  }

  static constexpr ArrivedLevel kEnded{.level = {0, 1, LevelKind::Later, 0}, .lines = {}};

  TablesView::Tree trees_[2];
};

/// Two trees of a forest of up to kMaxColumns columns. If a level's tests use more than a few columns, the
/// rows' codes are looked up row by row, which takes the same time for any number of columns.
template <class Target, unsigned kMaxColumns>
class TwoTreesByRow : public TwoTrees<Target> {
  using Simd = typename Target::Codes;
  using Base = TwoTrees<Target>;

 public:
  using ByRow = typename Simd::template CodesByRow<kMaxColumns>;
  using Base::Base;
  using typename Base::Level;

  static constexpr bool is_by_row(unsigned columns) {
    return columns > (kMaxColumns <= 8 ? 0 : kMaxColumns <= 16 ? 1 : 2);
  }

  template <unsigned Columns>
  class Lookups : public Base::template Lookups<Columns> {
    using Bytes = typename Simd::Bytes;

   public:
    FVM_INLINE explicit Lookups(const Level& level)
        : Base::template Lookups<Columns>(level), lists_(this->list(0), this->list(1)) {}
    FVM_INLINE Bytes tested_by_row(const std::uint8_t* codes, Bytes column) const {
      return ByRow::pick(codes, lists_[column]);
    }

   private:
    typename Simd::template TwoLists<kMaxColumns> lists_;
  };
};

}  // namespace forestvm::host
