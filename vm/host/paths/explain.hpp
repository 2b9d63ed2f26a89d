// Computes contributions and interactions of features for up to 64 rows, in the lanes of vectors:
// forestvm/internal/loaded_paths.hpp says what is computed. In: the rows' codes. Out: float64 totals, 64 rows for each
// feature that trees of the output test, and then, if they are asked for, for each pair of features that interact.
// Every lane is computed by itself, in one order and without fused operations, so a row's numbers have the same bits in
// every batch and on every target.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/platform.hpp>

#include "vm/host/paths/explain_task.hpp"
#include "vm/host/paths/level_paths.hpp"
#include "vm/host/simd/level_walk.hpp"
#include "vm/host/simd/path_lanes.hpp"

namespace forestvm::host {

/// Goes through the trees of an output for the rows of a task, tile by tile at each step. A tile has kVectors vectors:
/// additions to one vector wait for each other; those to another go on meanwhile.
template <class Target, class Number, unsigned kVectors>
class PathWalk {
  using Lanes = PathLanes<Target, Number>;
  using Vector = typename Lanes::Vector;
  using Mask = typename Lanes::Mask;
  using Table = typename Lanes::Table;
  using Choice = typename Lanes::Choice;
  static constexpr unsigned kTile = kVectors * Lanes::kLanes;  ///< Rows of a tile.
  /// Whether a fork is one step. Targets with fewer registers take its steps one by one.
  static constexpr bool kForks = Lanes::kPermutes;

 public:
  PathWalk(const ExplainTask& task, const Number* constants, const ExplainScratch& parts)
      : task_(task),
        constants_(constants),
        decisions_(reinterpret_cast<PathDecisions*>(task.scratch + parts.decisions) + 1),
        choices_(reinterpret_cast<std::uint8_t*>(task.scratch + parts.choices)),
        numbers_{reinterpret_cast<Number*>(task.scratch + parts.numbers[0]),
                 reinterpret_cast<Number*>(task.scratch + parts.numbers[1])},
        parts_(task.pairs ? reinterpret_cast<Number*>(task.scratch + parts.parts) : nullptr),
        tiled_rows_((task.rows + kTile - 1) / kTile * kTile) {
    decisions_[-1] = {0, ~std::uint64_t{0}};
  }

  /// Adds the contributions of a tree to `sums`, kCodeRows numbers for each feature of its batch; then its
  /// interactions, if the task asks for them.
  void add(const PathTree& tree, Number* sums) {
    points_ = tree.points;
    sums_ = sums;
    splits_ = task_.paths->splits.data() + tree.first_split;
    tree_constants_ = constants_ + tree.first_constant;
    if (parts_ != nullptr) {
      pairs_ = task_.paths->pairs.data() + tree.first_pair;
      pair_ends_ = task_.paths->pair_ends.data() + tree.first_split;
    }
    test(tree.split_count);
    for (unsigned k = 0; k < points_; ++k) {
      const Vector weight = Lanes::all(tree_constants_[k]);
      for (unsigned row = 0; row < tiled_rows_; row += Lanes::kLanes)
        Lanes::store(numbers_[0] + k * kCodeRows + row, weight);
    }
    const PathStep* const steps = task_.paths->steps.data() + tree.first_step;
    for (const PathStep* step = steps; step != steps + tree.step_count; ++step) step += take(*step);
  }

 private:
  /// Sets which rows go left at each split, and which rows went along the way to it at every split above that tests
  /// its feature.
  FVM_INLINE void test(std::size_t count) {
    const PathSplit* const splits = splits_;
    PathDecisions* const decisions = decisions_;
    for (std::size_t i = 0; i < count; ++i) {
      const PathSplit& split = splits[i];
      const std::uint8_t* const codes = task_.codes + std::size_t{split.column} * kCodeRows;
      const std::uint64_t tested = Lanes::at_most(codes, task_.rows, split.code);
      const PathDecisions above = decisions[std::ptrdiff_t{split.above} - 1];
      const std::uint64_t open =
          above.open & ((split.flags & kAboveLeft) != 0 ? above.tested : ~above.tested);
      decisions[i] = {tested, open};
      if constexpr (Lanes::kPermutes) Lanes::set_choices(tested, open, choices_ + i * kCodeRows);
    }
  }

  /// Takes a step. Returns the number of steps after it that are done with it.
  FVM_INLINE unsigned take(const PathStep& step) {
    const PathSplit& split = splits_[step.split];
    if (step.motion == PathMotion::Fork && (!kForks || parts_ != nullptr)) return 0;
    if (parts_ != nullptr && step.motion != PathMotion::Down) add_pairs(step, split);
    if ((split.flags & kFourConstants) != 0)
      move<true>(step, split);
    else
      move<false>(step, split);
    if (step.motion != PathMotion::Fork) return 0;
    return 4u - ((split.flags & kLeftLeaf) != 0 ? 1 : 0) - ((split.flags & kRightLeaf) != 0 ? 1 : 0);
  }

  template <bool kFour>
  FVM_INLINE void move(const PathStep& step, const PathSplit& split) {
    const bool left = (split.flags & kLeftLeaf) == 0, right = (split.flags & kRightLeaf) == 0;
    switch (step.motion) {
      case PathMotion::Down:
        if constexpr (kForks) {
          if (!right) return down<kFour, true, false>(step, split);
          if (!left) return down<kFour, false, true>(step, split);
          return down<kFour, true, true>(step, split);
        }
        // Three functions instead of one would take more code, of which there is a copy for each kind of tiles.
        down<kFour, true, true>(step, split);
        if (!right) set_leaf(at(true, step.depth + 1u), constants(split)[SplitConstants::RightValue]);
        if (!left) set_leaf(at(false, step.depth + 1u), constants(split)[SplitConstants::LeftValue]);
        return;
      case PathMotion::Up:
        return up<kFour>(step, split);
      case PathMotion::Both:
        return both<kFour>(step, split);
      case PathMotion::Fork:
        if constexpr (kForks) {
          if (!right) return fork<kFour, true, false>(step, split);
          if (!left) return fork<kFour, false, true>(step, split);
          return fork<kFour, true, true>(step, split);
        }
    }
  }

  /// How the rows of a tile's vectors choose constants of a split.
  struct Choices {
    Choice of[kVectors];
  };

  template <bool kFour>
  FVM_INLINE Choices choices(std::size_t split, unsigned row) const {
    Choices choices;
    const PathDecisions& decisions = decisions_[split];
    for (unsigned v = 0; v < kVectors; ++v) {
      const unsigned first = row + v * Lanes::kLanes;
      if constexpr (Lanes::kPermutes)
        choices.of[v] = Lanes::choice(choices_ + split * kCodeRows + first);
      else
        choices.of[v] = Lanes::template choice<kFour>(decisions.tested >> first, decisions.open >> first);
    }
    return choices;
  }

  /// Returns a depth's first number of left or right children.
  FVM_INLINE Number* at(bool is_right, unsigned depth) const {
    return numbers_[is_right] + std::size_t{depth} * points_ * kCodeRows;
  }

  FVM_INLINE const Number* constants(const PathSplit& split) const {
    return tree_constants_ + split.constants;
  }

  /// Constants from one point of a split to the next.
  template <bool kFour>
  static constexpr unsigned kPoint = kFour ? SplitConstants::FourConstants : SplitConstants::TwoConstants;

  /// Sets S of a child that is a leaf. `numbers` are those of the child's depth.
  [[gnu::noinline]] void set_leaf(Number* numbers, Number value) const {
    const Vector values = Lanes::all(value);
    for (unsigned k = 0; k < points_; ++k)
      for (unsigned row = 0; row < tiled_rows_; row += kTile)
        for (unsigned v = 0; v < kVectors; ++v)
          Lanes::store(numbers + k * kCodeRows + row + v * Lanes::kLanes, values);
  }

  /// Gives P to the children of a split. Those that are leaves, because kLeft or kRight is false, get S.
  template <bool kFour, bool kLeft, bool kRight>
  [[gnu::noinline]] void down(const PathStep& step, const PathSplit& split) {
    const Number* const all = constants(split);
    const Number* const end = all + SplitConstants::Count + points_ * kPoint<kFour>;
    const Vector left_value = Lanes::all(all[SplitConstants::LeftValue]);
    const Vector right_value = Lanes::all(all[SplitConstants::RightValue]);
    const Number* own = at(step.is_right, step.depth);
    Number* left = at(false, step.depth + 1u);
    Number* right = at(true, step.depth + 1u);
    const unsigned rows = tiled_rows_;
    for (unsigned row = 0; row < rows; row += kTile) {
      const Choices choices = this->choices<kFour>(step.split, row);
      std::size_t i = row;
      for (const Number* point = all + SplitConstants::Count; point != end;
           point += kPoint<kFour>, i += kCodeRows) {
        const Table table = Lanes::template table<kFour>(point);
        for (unsigned v = 0; v < kVectors; ++v) {
          const Vector chance = Lanes::held(Lanes::load(own + i + v * Lanes::kLanes));
          const Vector to_left = chance * Lanes::template chosen<kFour>(table, choices.of[v]);
          Lanes::store(left + i + v * Lanes::kLanes, kLeft ? to_left : left_value);
          Lanes::store(right + i + v * Lanes::kLanes, kRight ? chance - to_left : right_value);
        }
      }
    }
  }

  /// Adds to a feature's sums what a split contributes. `all` are its constants, `integrals` the quadrature sums of
  /// P f' (S(left) - S(right)), without the point 0 and the factors that do not depend on the point.
  template <bool kFour>
  FVM_INLINE static void contribute(const Number* all, Number* to, const Choices& choices,
                                    const Vector (&integrals)[kVectors]) {
    const Table factors = Lanes::template table<kFour>(all + SplitConstants::IfLeft);
    const Table firsts = Lanes::template table<kFour>(all + SplitConstants::FirstLeft);
    for (unsigned v = 0; v < kVectors; ++v) {
      const Vector part = Lanes::template chosen<kFour>(factors, choices.of[v]) * integrals[v] +
                          Lanes::template chosen<kFour>(firsts, choices.of[v]);
      Lanes::store(to + v * Lanes::kLanes, Lanes::load(to + v * Lanes::kLanes) + part);
    }
  }

  /// Returns the sums of a split's feature.
  FVM_INLINE Number* sums(const PathSplit& split) const { return sums_ + std::size_t{split.sum} * kCodeRows; }

  /// Adds to the sums of a split's pairs what the split contributes to them, before the split's own part is added.
  [[gnu::noinline]] void add_pairs(const PathStep& step, const PathSplit& split) {
    const PathPair* const begin = pairs_ + (step.split == 0 ? 0 : pair_ends_[step.split - 1]);
    const PathPair* const end = pairs_ + pair_ends_[step.split];
    if (begin == end) return;
    set_parts(step, split);
    const Number* const all = constants(split);
    const Table factors = Lanes::template table<true>(all + SplitConstants::IfLeft);
    const Table firsts = Lanes::template table<true>(all + SplitConstants::FirstLeft);
    for (unsigned row = 0; row < tiled_rows_; row += kTile) {
      const Choices choices = this->choices<true>(step.split, row);
      Vector factor[kVectors], first[kVectors], away[kVectors];
      for (unsigned v = 0; v < kVectors; ++v) {
        factor[v] = Lanes::template chosen<true>(factors, choices.of[v]);
        first[v] = Lanes::template chosen<true>(firsts, choices.of[v]);
      }
      weigh(tree_constants_ + points_, row, factor, first, away);
      for (const PathPair* pair = begin; pair != end; ++pair) {
        const PathDecisions& above = decisions_[pair->above];
        const Masks taken(above.open & (pair->right ? ~above.tested : above.tested), row);
        Vector part[kVectors];
        weigh(tree_constants_ + pair->constants, row, factor, first, part);
        Number* const to = sums_ + std::size_t{pair->sum} * kCodeRows + row;
        for (unsigned v = 0; v < kVectors; ++v)
          Lanes::store(to + v * Lanes::kLanes,
                       Lanes::load(to + v * Lanes::kLanes) + Lanes::select(taken.of[v], away[v], part[v]));
      }
    }
  }

  /// Sets what a split adds to the integral at each point.
  FVM_INLINE void set_parts(const PathStep& step, const PathSplit& split) const {
    const Number* const all = constants(split);
    const bool four = (split.flags & kFourConstants) != 0, leaves = step.motion == PathMotion::Both;
    const Number* const own = at(step.is_right, step.depth);
    const Number* const lefts = at(false, step.depth + 1u);
    const Number* const rights = at(true, step.depth + 1u);
    for (unsigned k = 0; k < points_; ++k) {
      const Number* const point = all + SplitConstants::Count + k * (four ? kPoint<true> : kPoint<false>);
      const Vector slope = Lanes::all(four ? point[SplitConstants::PointSlope] : 1);
      for (unsigned row = 0; row < tiled_rows_; row += kTile)
        for (unsigned v = 0; v < kVectors; ++v) {
          const std::size_t i = k * kCodeRows + row + v * Lanes::kLanes;
          Vector part = Lanes::load(own + i);
          if (!leaves) part = part * (Lanes::load(lefts + i) - Lanes::load(rights + i));
          Lanes::store(parts_ + i, part * slope);
        }
    }
  }

  /// The masks of a tile's vectors.
  struct Masks {
    Mask of[kVectors];
    Masks(std::uint64_t bits, unsigned row) {
      for (unsigned v = 0; v < kVectors; ++v) of[v] = Lanes::mask(bits >> (row + v * Lanes::kLanes));
    }
  };

  /// Computes the integral of a split's part times a function whose values at t = 0 and at the points are given.
  FVM_INLINE void weigh(const Number* function, unsigned row, const Vector (&factor)[kVectors],
                        const Vector (&first)[kVectors], Vector (&integrals)[kVectors]) const {
    for (Vector& integral : integrals) integral = Vector{};
    for (unsigned k = 0; k < points_; ++k) {
      const Vector value = Lanes::all(function[k + 1]);
      for (unsigned v = 0; v < kVectors; ++v)
        integrals[v] = integrals[v] + Lanes::load(parts_ + k * kCodeRows + row + v * Lanes::kLanes) * value;
    }
    const Vector value = Lanes::all(function[0]);
    for (unsigned v = 0; v < kVectors; ++v) integrals[v] = factor[v] * integrals[v] + first[v] * value;
  }

  template <bool kFour>
  [[gnu::noinline]] void both(const PathStep& step, const PathSplit& split) {
    const Number* const all = constants(split);
    const Number* const end = all + SplitConstants::Count + points_ * kPoint<kFour>;
    Number* const own = at(step.is_right, step.depth);
    Number* const to = sums(split);
    const unsigned rows = tiled_rows_;
    for (unsigned row = 0; row < rows; row += kTile) {
      const Choices choices = this->choices<kFour>(step.split, row);
      Vector integrals[kVectors] = {};
      std::size_t i = row;
      for (const Number* point = all + SplitConstants::Count; point != end;
           point += kPoint<kFour>, i += kCodeRows) {
        const Table table = Lanes::template table<kFour>(point);
        for (unsigned v = 0; v < kVectors; ++v) {
          Number* const numbers = own + i + v * Lanes::kLanes;
          integrals[v] = integrals[v] + sloped<kFour>(Lanes::load(numbers), point);
          Lanes::store(numbers, Lanes::template chosen<kFour>(table, choices.of[v]));
        }
      }
      contribute<kFour>(all, to + row, choices, integrals);
    }
  }

  /// Returns a part of the integral at a point times the point's slope.
  template <bool kFour>
  FVM_INLINE static Vector sloped(Vector part, const Number* point) {
    if constexpr (kFour) return part * Lanes::all(point[SplitConstants::PointSlope]);
    return part;
  }

  template <bool kFour>
  [[gnu::noinline]] void up(const PathStep& step, const PathSplit& split) {
    const Number* const all = constants(split);
    const Number* const end = all + SplitConstants::Count + points_ * kPoint<kFour>;
    const Number* const lefts = at(false, step.depth + 1u);
    const Number* const rights = at(true, step.depth + 1u);
    Number* const own = at(step.is_right, step.depth);
    Number* const to = sums(split);
    const unsigned rows = tiled_rows_;
    for (unsigned row = 0; row < rows; row += kTile) {
      const Choices choices = this->choices<kFour>(step.split, row);
      Vector integrals[kVectors] = {};
      std::size_t i = row;
      for (const Number* point = all + SplitConstants::Count; point != end;
           point += kPoint<kFour>, i += kCodeRows) {
        const Table table = Lanes::template table<kFour>(point);
        for (unsigned v = 0; v < kVectors; ++v) {
          const std::size_t at = i + v * Lanes::kLanes;
          const Vector right = Lanes::held(Lanes::load(rights + at)),
                       difference = Lanes::load(lefts + at) - right;
          integrals[v] = integrals[v] + sloped<kFour>(Lanes::load(own + at) * difference, point);
          Lanes::store(own + at, right + Lanes::template chosen<kFour>(table, choices.of[v]) * difference);
        }
      }
      contribute<kFour>(all, to + row, choices, integrals);
    }
  }

  /// Does what the steps of a fork do: kLeft and kRight say which children are splits. Their P and S stay in registers.
  /// The splits of a fork and their constants follow each other.
  template <bool kFour, bool kLeft, bool kRight>
  [[gnu::noinline]] void fork(const PathStep& step, const PathSplit& split) {
    constexpr unsigned kRightAt = kLeft ? 2 : 1;
    const std::size_t size = SplitConstants::Count + points_ * kPoint<kFour>;
    const Number* const all = constants(split);
    const Vector left_value = Lanes::all(all[SplitConstants::LeftValue]);
    const Vector right_value = Lanes::all(all[SplitConstants::RightValue]);
    Number* const own = at(step.is_right, step.depth);
    const unsigned rows = tiled_rows_;
    for (unsigned row = 0; row < rows; row += kTile) {
      const Choices choices = this->choices<kFour>(step.split, row);
      Choices left_choices, right_choices;
      if constexpr (kLeft) left_choices = this->choices<kFour>(step.split + 1, row);
      if constexpr (kRight) right_choices = this->choices<kFour>(step.split + kRightAt, row);
      Vector integrals[kVectors] = {}, left_integrals[kVectors] = {}, right_integrals[kVectors] = {};
      std::size_t i = row;
      for (const Number* point = all + SplitConstants::Count; point != all + size;
           point += kPoint<kFour>, i += kCodeRows) {
        const Number* const left_point = point + size;
        const Number* const right_point = point + kRightAt * size;
        const Table table = Lanes::template table<kFour>(point);
        Table left_table, right_table;
        if constexpr (kLeft) left_table = Lanes::template table<kFour>(left_point);
        if constexpr (kRight) right_table = Lanes::template table<kFour>(right_point);
        for (unsigned v = 0; v < kVectors; ++v) {
          Number* const numbers = own + i + v * Lanes::kLanes;
          const Vector chance = Lanes::held(Lanes::load(numbers));
          const Vector share = Lanes::template chosen<kFour>(table, choices.of[v]), to_left = chance * share;
          Vector left = left_value, right = right_value;
          if constexpr (kLeft) {
            left_integrals[v] = left_integrals[v] + sloped<kFour>(to_left, left_point);
            left = Lanes::template chosen<kFour>(left_table, left_choices.of[v]);
          }
          if constexpr (kRight) {
            right_integrals[v] = right_integrals[v] + sloped<kFour>(chance - to_left, right_point);
            right = Lanes::template chosen<kFour>(right_table, right_choices.of[v]);
          }
          const Vector difference = left - right;
          integrals[v] = integrals[v] + sloped<kFour>(chance * difference, point);
          Lanes::store(numbers, right + share * difference);
        }
      }
      const PathSplit* const splits = &split;
      if constexpr (kLeft) contribute<kFour>(all + size, sums(splits[1]) + row, left_choices, left_integrals);
      if constexpr (kRight)
        contribute<kFour>(all + kRightAt * size, sums(splits[kRightAt]) + row, right_choices,
                          right_integrals);
      contribute<kFour>(all, sums(split) + row, choices, integrals);
    }
  }

  const ExplainTask& task_;
  const Number* constants_;
  /// For each split of the tree. The one before them stands for no split: all rows go right there.
  PathDecisions* decisions_;
  /// For each split of the tree, a byte for each row where the target has them: see PathLanes::set_choices.
  std::uint8_t* choices_;
  /// Numbers of splits that are left and right children, for each depth, point and row: P times the point's weight,
  /// until the split's last step writes S.
  Number* numbers_[2];
  /// For each point and row, what the visited split adds to the integral. Null if pairs are not asked for.
  Number* parts_;
  unsigned tiled_rows_;
  unsigned points_ = 0;
  Number* sums_ = nullptr;
  const PathSplit* splits_ = nullptr;
  const Number* tree_constants_ = nullptr;
  const PathPair* pairs_ = nullptr;
  const std::uint32_t* pair_ends_ = nullptr;
};

/// Adds the first `count` of a batch's sums to their totals.
FVM_INLINE void add_to_totals(const HostPaths& paths, const PathBatch& batch, std::size_t count,
                              const float* sums, double* totals) {
  for (std::size_t i = 0; i < count; ++i) {
    double* const total = totals + std::size_t{paths.totals[batch.first_total + i]} * kCodeRows;
    for (unsigned row = 0; row < kCodeRows; ++row)
      total[row] += static_cast<double>(sums[i * kCodeRows + row]);
  }
}

template <class Target, class Number, unsigned kVectors>
void explain(const ExplainTask& task, const Number* constants) {
  const HostPaths& paths = *task.paths;
  const ExplainScratch parts(paths);
  PathWalk<Target, Number, kVectors> walk(task, constants, parts);
  auto* const totals = reinterpret_cast<double*>(task.scratch + parts.totals);
  const std::size_t total_count = std::size_t{task.output->features} + (task.pairs ? task.output->pairs : 0);
  std::fill_n(totals, total_count * kCodeRows, 0.0);
  for (std::size_t b = task.output->first_batch; b < task.output->end_batch; ++b) {
    const PathBatch& batch = paths.batches[b];
    const std::size_t count = std::size_t{batch.sums} + (task.pairs ? batch.pair_sums : 0);
    std::size_t t = batch.first_tree, end = batch.end_tree;
    if (!task.all_trees) [[unlikely]] {
      t = std::max(t, task.first_tree);
      end = std::min(end, task.end_tree);
      if (t >= end) continue;
    }
    if constexpr (std::is_same_v<Number, double>) {
      for (; t < end; ++t) walk.add(paths.trees[t], totals);
    } else {
      auto* const sums = reinterpret_cast<Number*>(task.scratch + parts.sums);
      std::fill_n(sums, count * kCodeRows, Number{0});
      for (; t < end; ++t) walk.add(paths.trees[t], sums);
      add_to_totals(paths, batch, count, sums, totals);
    }
  }
}

/// Sets the pattern of each row: a bit for each feature, which is 1 if the row passes all of the feature's tests.
FVM_INLINE void set_patterns(const ExplainTask& task, const PatternLeaf& leaf, const PatternTest* tests,
                             std::uint16_t* patterns) {
  std::uint8_t codes[kCodeRows] = {};
  std::fill_n(patterns, kCodeRows, static_cast<std::uint16_t>((1u << leaf.features) - 1));
  for (const PatternTest* test = tests; test != tests + leaf.test_count; ++test) {
    std::memcpy(codes, task.codes + std::size_t{test->column} * kCodeRows, task.rows);
    const auto range = static_cast<std::uint8_t>(test->high - test->low);
    const auto others = static_cast<std::uint16_t>(~(1u << test->bit));
#pragma GCC unroll 1
    for (unsigned row = 0; row < kCodeRows; ++row) {
      const bool passes = static_cast<std::uint8_t>(codes[row] - test->low) <= range;
      patterns[row] &= passes ? std::uint16_t{0xffff} : others;
    }
  }
}

/// Adds the contributions that are looked up: see PatternLeaf.
FVM_INLINE void add_patterns(const ExplainTask& task) {
  const HostPaths& paths = *task.paths;
  const PathOutput& output = *task.output;
  const std::uint32_t* const features = paths.features.data() + output.first_feature;
  auto* const totals = reinterpret_cast<double*>(task.scratch + ExplainScratch(paths).totals);
  const PatternTest* begin = paths.pattern_tests.data();
  const double* numbers = paths.pattern_numbers.data();
  std::uint16_t patterns[kCodeRows];
  for (const PatternLeaf& leaf : paths.pattern_leaves) {
    const PatternTest* const end = begin + leaf.test_count;
    const std::size_t count = std::size_t{1} << leaf.features;
    if (&output == &paths.outputs[leaf.output]) {
      set_patterns(task, leaf, begin, patterns);
      for (const PatternTest* test = begin; test != end; ++test) {
        if (test->adds == 0) continue;
        const auto others = static_cast<std::uint16_t>(~(1u << test->bit));
        double* const to =
            totals +
            (std::lower_bound(features, features + output.features, test->feature) - features) * kCodeRows;
#pragma GCC unroll 1
        for (unsigned row = 0; row < task.rows; ++row)
          to[row] += numbers[patterns[row]] - numbers[count + (patterns[row] & others)];
      }
    }
    begin = end;
    numbers += 2 * count;
  }
}

/// Goes through the trees with tiles of two vectors. With AVX2, whose calls of few rows have no other way, tiles have
/// one vector if all rows lie in it.
template <class Target, class Number>
void explain(const ExplainTask& task, const Number* constants) {
  using Lanes = PathLanes<Target, Number>;
  if constexpr (Lanes::kPermutes) {
    if (task.rows <= kLevelRows && !task.pairs && task.all_trees && !task.paths->levels.empty())
      return explain_levels<Target, Number>(task);
  } else if constexpr (Lanes::kBytes > 16) {
    if (task.rows <= Lanes::kLanes) return explain<Target, Number, 1>(task, constants);
  }
  explain<Target, Number, 2>(task, constants);
}

/// Adds the form of paths that explain_levels reads, where the target has it.
template <class Target>
FVM_INLINE void add_few_rows(HostPaths& paths) {
  if constexpr (PathLanes<Target, float>::kPermutes) host::add_levels(paths);
}

template <class Target>
void explain(const ExplainTask& task) {
  if (task.paths->wide)
    explain<Target>(task, task.paths->doubles.data());
  else
    explain<Target>(task, task.paths->singles.data());
  add_patterns(task);
}

}  // namespace forestvm::host
