// Computes contributions and interactions of features for up to 64 rows, in the lanes of vectors: see loaded_paths.hpp
// for what is computed. In: the rows' codes. Out: float64 totals, 64 rows for each feature that trees of the output
// test, and then, if they are asked for, for each pair of features that interact.
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
#include "vm/host/paths/loaded_paths.hpp"
#include "vm/host/simd/level_walk.hpp"
#include "vm/host/simd/path_lanes.hpp"

namespace forestvm::host {

/// Goes through the trees of an output for all rows of a task, tile by tile at each step. A tile has kVectors vectors:
/// additions to one vector wait for each other; those to another go on meanwhile.
template <class Target, class Number, unsigned kVectors>
class PathWalk {
  using Lanes = PathLanes<Target, Number>;
  using Vector = typename Lanes::Vector;
  using Mask = typename Lanes::Mask;
  static constexpr unsigned kTile = kVectors * Lanes::kLanes;  ///< Rows of a tile.

 public:
  PathWalk(const ExplainTask& task, const Number* constants, const ExplainScratch& parts)
      : task_(task),
        constants_(constants),
        tested_(reinterpret_cast<std::uint64_t*>(task.scratch + parts.tested)),
        open_(reinterpret_cast<std::uint64_t*>(task.scratch + parts.open)),
        chances_(reinterpret_cast<Number*>(task.scratch + parts.chances)),
        means_{reinterpret_cast<Number*>(task.scratch + parts.means[0]),
               reinterpret_cast<Number*>(task.scratch + parts.means[1])},
        parts_(task.pairs ? reinterpret_cast<Number*>(task.scratch + parts.parts) : nullptr),
        tiled_rows_((task.rows + kTile - 1) / kTile * kTile) {}

  /// Adds the contributions of a tree to `sums`, kCodeRows numbers for each feature of its batch; then its
  /// interactions, if the task asks for them.
  void add(const PathTree& tree, Number* sums) {
    points_ = tree.points;
    sums_ = sums;
    const Number* const constants = constants_ + tree.first_constant;
    for (unsigned k = 0; k < points_; ++k) {
      const Vector weight = Lanes::all(constants[k]);
      for (unsigned row = 0; row < tiled_rows_; row += Lanes::kLanes)
        Lanes::store(chances_ + k * kCodeRows + row, weight);
    }
    const PathSplit* const splits = task_.paths->splits.data() + tree.first_split;
    tree_constants_ = constants;
    if (parts_ != nullptr) {
      pairs_ = task_.paths->pairs.data() + tree.first_pair;
      pair_ends_ = task_.paths->pair_ends.data() + tree.first_split;
    }
    const PathStep* const steps = task_.paths->steps.data() + tree.first_step;
    for (std::size_t i = 0; i < tree.step_count; ++i) {
      const PathSplit& split = splits[steps[i].split];
      take(steps[i], split, constants + split.constants);
    }
  }

 private:
  void take(const PathStep& step, const PathSplit& split, const Number* constants) {
    if (step.motion == PathMotion::Turn) return turn(step.depth);
    if (step.motion != PathMotion::Up) test(step.depth, split);
    if (split.above == kNoneAbove)
      move<false>(step, split, constants);
    else
      move<true>(step, split, constants);
    if (parts_ != nullptr && (step.motion == PathMotion::Up || step.motion == PathMotion::Both))
      add_pairs(step, constants);
  }

  template <bool kRepeated>
  FVM_INLINE void move(const PathStep& step, const PathSplit& split, const Number* constants) {
    switch (step.motion) {
      case PathMotion::Left:
        return down<kRepeated, false>(step.depth, constants);
      case PathMotion::Right:
        return down<kRepeated, true>(step.depth, constants);
      case PathMotion::Up:
        return up<kRepeated>(step, split, constants);
      case PathMotion::Both:
        return both<kRepeated>(step, split, constants);
      case PathMotion::Turn:
        return;
    }
  }

  /// Sets which rows go left at a split, and which rows went along the way to it at every split above that tests
  /// its feature.
  void test(unsigned depth, const PathSplit& split) {
    tested_[depth] =
        Lanes::at_most(task_.codes + std::size_t{split.column} * kCodeRows, task_.rows, split.code);
    open_[depth] = ~std::uint64_t{0};
    if (split.above == kNoneAbove) return;
    const std::uint64_t left = tested_[split.above];
    open_[depth] = open_[split.above] & ((split.flags & kAboveLeft) != 0 ? left : ~left);
  }

  /// The masks of a tile's vectors.
  struct Masks {
    Mask of[kVectors];
    Masks(std::uint64_t bits, unsigned row) {
      for (unsigned v = 0; v < kVectors; ++v) of[v] = Lanes::mask(bits >> (row + v * Lanes::kLanes));
    }
  };

  /// Returns the index in chances_ and means_ of the number for a depth, a point and a row.
  FVM_INLINE std::size_t at(unsigned depth, unsigned point, unsigned row) const {
    return (std::size_t{depth} * points_ + point) * kCodeRows + row;
  }

  template <bool kRepeated>
  FVM_INLINE static const Number* point(const Number* constants, unsigned k) {
    return constants + SplitConstants::Count + k * (kRepeated ? 3 : 2);
  }

  /// Chooses one of three numbers for each row, by the row's decision at a split.
  template <bool kRepeated>
  struct Choice {
    Vector left, right, away;
    FVM_INLINE Vector of(Mask tested, Mask open) const {
      const Vector chosen = Lanes::select(tested, right, left);
      if constexpr (kRepeated) return Lanes::select(open, away, chosen);
      return chosen;
    }
  };

  template <bool kRepeated>
  FVM_INLINE static Choice<kRepeated> choice(const Number* constants, unsigned k) {
    const Number* const here = point<kRepeated>(constants, k);
    return {Lanes::all(here[SplitConstants::PointLeft]), Lanes::all(here[SplitConstants::PointRight]),
            Lanes::all(constants[SplitConstants::IfAway])};
  }

  template <bool kRepeated, bool kRight>
  void down(unsigned depth, const Number* constants) {
    for (unsigned row = 0; row < tiled_rows_; row += kTile) {
      const Masks tested(tested_[depth], row), open(kRepeated ? open_[depth] : 0, row);
      for (unsigned k = 0; k < points_; ++k) {
        const auto chosen = choice<kRepeated>(constants, k);
        const Number* const from = chances_ + at(depth, k, row);
        Number* const to = chances_ + at(depth + 1, k, row);
        for (unsigned v = 0; v < kVectors; ++v) {
          const Vector chance = Lanes::load(from + v * Lanes::kLanes);
          const Vector left = chance * chosen.of(tested.of[v], open.of[v]);
          Lanes::store(to + v * Lanes::kLanes, kRight ? chance - left : left);
        }
      }
    }
  }

  void turn(unsigned depth) {
    for (unsigned k = 0; k < points_; ++k) {
      const Number* const from = chances_ + at(depth, k, 0);
      Number* const to = chances_ + at(depth + 1, k, 0);
      for (unsigned row = 0; row < tiled_rows_; row += Lanes::kLanes)
        Lanes::store(to + row, Lanes::load(from + row) - Lanes::load(to + row));
    }
  }

  /// Adds to a feature's sums what a split contributes. `integrals` are the quadrature sums of P f' (S(left) -
  /// S(right)), without the point 0 and the factors that do not depend on the point.
  template <bool kRepeated>
  FVM_INLINE void contribute(const PathSplit& split, const Number* constants, unsigned row,
                             const Masks& tested, const Masks& open, const Vector (&integrals)[kVectors]) {
    const Vector left = Lanes::all(constants[SplitConstants::IfLeft]),
                 right = Lanes::all(constants[SplitConstants::IfRight]),
                 first_left = Lanes::all(constants[SplitConstants::FirstLeft]),
                 first_right = Lanes::all(constants[SplitConstants::FirstRight]);
    Number* const to = sums_ + std::size_t{split.sum} * kCodeRows + row;
    for (unsigned v = 0; v < kVectors; ++v) {
      Vector part = Lanes::select(tested.of[v], right, left) * integrals[v] +
                    Lanes::select(tested.of[v], first_right, first_left);
      if constexpr (kRepeated) part = Lanes::select(open.of[v], Lanes::all(0), part);
      Lanes::store(to + v * Lanes::kLanes, Lanes::load(to + v * Lanes::kLanes) + part);
    }
  }

  /// Keeps what a split adds to the integral at a point, because its pairs of features need it again.
  FVM_INLINE void keep_part(unsigned k, unsigned row, unsigned v, Vector part) const {
    if (parts_ != nullptr) Lanes::store(parts_ + k * kCodeRows + row + v * Lanes::kLanes, part);
  }

  /// Adds to the sums of a split's pairs what the split contributes to them. keep_part has kept its parts of the
  /// integral.
  void add_pairs(const PathStep& step, const Number* constants) {
    const PathPair* const begin = pairs_ + (step.split == 0 ? 0 : pair_ends_[step.split - 1]);
    const PathPair* const end = pairs_ + pair_ends_[step.split];
    for (unsigned row = 0; row < tiled_rows_ && begin != end; row += kTile) {
      const Masks tested(tested_[step.depth], row), open(open_[step.depth], row);
      Vector factor[kVectors], first[kVectors], away[kVectors];
      const auto choose = [&](unsigned v, unsigned if_left, unsigned if_right) {
        const Vector chosen =
            Lanes::select(tested.of[v], Lanes::all(constants[if_right]), Lanes::all(constants[if_left]));
        return Lanes::select(open.of[v], Lanes::all(0), chosen);
      };
      for (unsigned v = 0; v < kVectors; ++v) {
        factor[v] = choose(v, SplitConstants::IfLeft, SplitConstants::IfRight);
        first[v] = choose(v, SplitConstants::FirstLeft, SplitConstants::FirstRight);
      }
      weigh(tree_constants_ + points_, row, factor, first, away);
      for (const PathPair* pair = begin; pair != end; ++pair) {
        const std::uint64_t left = tested_[pair->depth];
        const Masks taken(open_[pair->depth] & (pair->right ? ~left : left), row);
        Vector part[kVectors];
        weigh(tree_constants_ + pair->constants, row, factor, first, part);
        Number* const to = sums_ + std::size_t{pair->sum} * kCodeRows + row;
        for (unsigned v = 0; v < kVectors; ++v)
          Lanes::store(to + v * Lanes::kLanes,
                       Lanes::load(to + v * Lanes::kLanes) + Lanes::select(taken.of[v], away[v], part[v]));
      }
    }
  }

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

  template <bool kRepeated>
  void both(const PathStep& step, const PathSplit& split, const Number* constants) {
    for (unsigned row = 0; row < tiled_rows_; row += kTile) {
      const Masks tested(tested_[step.depth], row), open(kRepeated ? open_[step.depth] : 0, row);
      Vector integrals[kVectors] = {};
      for (unsigned k = 0; k < points_; ++k) {
        const auto chosen = choice<kRepeated>(constants, k);
        const Number* const chances = chances_ + at(step.depth, k, row);
        Number* const means = means_[step.is_right] + at(step.depth, k, row);
        for (unsigned v = 0; v < kVectors; ++v) {
          Vector chance = Lanes::load(chances + v * Lanes::kLanes);
          if constexpr (kRepeated)
            chance = chance * Lanes::all(point<true>(constants, k)[SplitConstants::PointSlope]);
          integrals[v] = integrals[v] + chance;
          keep_part(k, row, v, chance);
          Lanes::store(means + v * Lanes::kLanes, chosen.of(tested.of[v], open.of[v]));
        }
      }
      contribute<kRepeated>(split, constants, row, tested, open, integrals);
    }
  }

  /// S of a child at each point: the means that its steps wrote, or the value of a leaf.
  struct Child {
    const Number* from;
    unsigned point;   ///< Numbers from one point to the next.
    unsigned vector;  ///< Numbers from one vector to the next.
    alignas(64) Number value[Lanes::kLanes];

    FVM_INLINE Child(bool leaf, Number number, const Number* means)
        : from(leaf ? value : means), point(leaf ? 0 : kCodeRows), vector(leaf ? 0 : Lanes::kLanes) {
      Lanes::store(value, Lanes::all(number));
    }
    FVM_INLINE Vector at(unsigned k, unsigned v) const { return Lanes::load(from + k * point + v * vector); }
  };

  template <bool kRepeated>
  void up(const PathStep& step, const PathSplit& split, const Number* constants) {
    for (unsigned row = 0; row < tiled_rows_; row += kTile) {
      const Masks tested(tested_[step.depth], row), open(kRepeated ? open_[step.depth] : 0, row);
      const std::size_t below = at(step.depth + 1u, 0, row);
      const Child left((split.flags & kLeftLeaf) != 0, constants[SplitConstants::LeftValue],
                       means_[0] + below);
      const Child right((split.flags & kRightLeaf) != 0, constants[SplitConstants::RightValue],
                        means_[1] + below);
      Vector integrals[kVectors] = {};
      for (unsigned k = 0; k < points_; ++k) {
        const auto chosen = choice<kRepeated>(constants, k);
        const Number* const chances = chances_ + at(step.depth, k, row);
        Number* const means = means_[step.is_right] + at(step.depth, k, row);
        for (unsigned v = 0; v < kVectors; ++v) {
          const Vector other = right.at(k, v), difference = left.at(k, v) - other;
          Vector part = Lanes::load(chances + v * Lanes::kLanes) * difference;
          if constexpr (kRepeated)
            part = part * Lanes::all(point<true>(constants, k)[SplitConstants::PointSlope]);
          integrals[v] = integrals[v] + part;
          keep_part(k, row, v, part);
          Lanes::store(means + v * Lanes::kLanes, other + chosen.of(tested.of[v], open.of[v]) * difference);
        }
      }
      contribute<kRepeated>(split, constants, row, tested, open, integrals);
    }
  }

  const ExplainTask& task_;
  const Number* constants_;
  /// For each split on the way, by depth: a bit for each row, which is 1 if the row goes left.
  std::uint64_t* tested_;
  /// For each split on the way, by depth: a bit for each row, which is 1 if O is 1: see loaded_paths.hpp.
  std::uint64_t* open_;
  Number* chances_;   ///< P times the point's weight, for each depth, point and row: see at().
  Number* means_[2];  ///< S of left and of right children, for each depth, point and row.
  /// For each point and row, what the visited split adds to the integral. Null if pairs are not asked for.
  Number* parts_;
  unsigned tiled_rows_;
  unsigned points_ = 0;
  Number* sums_ = nullptr;
  const Number* tree_constants_ = nullptr;
  const PathPair* pairs_ = nullptr;
  const std::uint32_t* pair_ends_ = nullptr;
};

/// Adds the first `count` of a batch's sums to their totals.
FVM_INLINE void add_to_totals(const LoadedPaths& paths, const PathBatch& batch, std::size_t count,
                              const float* sums, double* totals) {
  for (std::size_t i = 0; i < count; ++i) {
    double* const total = totals + std::size_t{paths.totals[batch.first_total + i]} * kCodeRows;
    for (unsigned row = 0; row < kCodeRows; ++row)
      total[row] += static_cast<double>(sums[i * kCodeRows + row]);
  }
}

template <class Target, class Number, unsigned kVectors>
void explain(const ExplainTask& task, const Number* constants) {
  const LoadedPaths& paths = *task.paths;
  const ExplainScratch parts(paths);
  PathWalk<Target, Number, kVectors> walk(task, constants, parts);
  auto* const totals = reinterpret_cast<double*>(task.scratch + parts.totals);
  const std::size_t total_count = std::size_t{task.output->features} + (task.pairs ? task.output->pairs : 0);
  std::fill_n(totals, total_count * kCodeRows, 0.0);
  for (std::size_t b = task.output->first_batch; b < task.output->end_batch; ++b) {
    const PathBatch& batch = paths.batches[b];
    const std::size_t count = std::size_t{batch.sums} + (task.pairs ? batch.pair_sums : 0);
    if constexpr (std::is_same_v<Number, double>) {
      for (std::size_t t = batch.first_tree; t < batch.end_tree; ++t) walk.add(paths.trees[t], totals);
    } else {
      auto* const sums = reinterpret_cast<Number*>(task.scratch + parts.sums);
      std::fill_n(sums, count * kCodeRows, Number{0});
      for (std::size_t t = batch.first_tree; t < batch.end_tree; ++t) walk.add(paths.trees[t], sums);
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
  const LoadedPaths& paths = *task.paths;
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

/// Goes through the trees with tiles of two vectors, or of one if all rows lie in it. Where vectors are short, few
/// calls have so few rows, and one kind of tiles takes less code.
template <class Target, class Number>
void explain(const ExplainTask& task, const Number* constants) {
  using Lanes = PathLanes<Target, Number>;
  if constexpr (Lanes::kCompresses) {
    if (task.rows <= kLevelRows && !task.pairs && !task.paths->levels.empty())
      return explain_levels<Target, Number>(task);
  }
  if constexpr (Lanes::kBytes > 16) {
    if (task.rows <= Lanes::kLanes) return explain<Target, Number, 1>(task, constants);
  }
  explain<Target, Number, 2>(task, constants);
}

/// Adds the form of paths that explain_levels reads, where the target has it.
template <class Target>
FVM_INLINE void add_few_rows(LoadedPaths& paths) {
  if constexpr (PathLanes<Target, float>::kCompresses) host::add_levels(paths);
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
