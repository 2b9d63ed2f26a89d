// Computes contributions and interactions of features, a thread for each row and batch of trees:
// forestvm/internal/loaded_paths.hpp says what is computed. Operations and their order are those of the host's
// PathWalk, so the numbers have the host's bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/path_steps.hpp>

#include "kernels/device/kind_rows.hpp"
#include "kernels/link/kind_tables.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Takes a row through trees.
template <class Number>
class RowPaths {
 public:
  /// `codes` is the row's code in column 0; `sums` are those of the batch. `pairs`: they have interactions, too.
  FVM_DEVICE RowPaths(const KindTables& tables, bool pairs, const std::uint8_t* codes,
                      ThreadNumbers<Number> sums, ThreadNumbers<Number> numbers,
                      ThreadNumbers<std::uint8_t> choices)
      : tables_(tables),
        codes_(codes),
        sums_(sums),
        numbers_(numbers),
        choices_(choices),
        has_pairs_(pairs) {}

  /// Adds a tree's contributions, and interactions, to the sums.
  FVM_DEVICE void add(const PathTree& tree) {
    const Number* constants;
    if constexpr (std::is_same_v<Number, double>)
      constants = tables_.doubles + tree.first_constant;
    else
      constants = tables_.singles + tree.first_constant;
    const PathSplit* const splits = tables_.splits + tree.first_split;
    const std::uint16_t* const above_depths = tables_.above_depths + tree.first_split;
    points_ = tree.points;
    FVM_NO_UNROLL
    for (std::uint32_t k = 0; k < points_; ++k) numbers_[k] = constants[k];
    const PathStep* const end = tables_.steps + tree.first_step + tree.step_count;
    FVM_NO_UNROLL
    for (const PathStep* at = tables_.steps + tree.first_step; at != end; ++at) {
      const PathStep step = *at;
      if (step.motion == PathMotion::Fork) continue;  // its steps follow
      const PathSplit split = splits[step.split];
      if (step.motion != PathMotion::Up) test(step, split, above_depths[step.split]);
      if (has_pairs_ && step.motion != PathMotion::Down) add_pairs(tree, step, split, constants);
      take(step, split, constants + split.constants);
    }
  }

 private:
  /// Sets which constants the row chooses at a split: of the left child, of the right child, or those of rows that do
  /// not take the way to the split at some split above that tests the same feature.
  FVM_DEVICE void test(const PathStep& step, const PathSplit& split, std::uint32_t above_depth) const {
    const std::uint8_t left = SplitConstants::PointLeft, right = SplitConstants::PointRight;
    const bool goes_left = codes_[std::size_t{split.column} * kCodeRows] <= split.code;
    std::uint8_t choice = goes_left ? left : right;
    if (split.above != kNoneAbove &&
        choices_[above_depth] != ((split.flags & kAboveLeft) != 0 ? left : right))
      choice = SplitConstants::PointAway;
    choices_[step.depth] = choice;
  }

  FVM_DEVICE ThreadNumbers<Number> at(bool is_right, std::uint32_t depth) const {
    return {&numbers_[(is_right ? tables_.levels : 0) + std::size_t{depth} * points_], numbers_.stride};
  }

  FVM_DEVICE void take(const PathStep& step, const PathSplit& split, const Number* all) const {
    const bool four = (split.flags & kFourConstants) != 0;
    const unsigned choice = choices_[step.depth];
    const unsigned of_point = four ? SplitConstants::FourConstants : SplitConstants::TwoConstants;
    const Number* point = all + SplitConstants::Count;
    const ThreadNumbers<Number> own = at(step.is_right != 0, step.depth);
    // At the deepest splits there is nothing below, and no room for it.
    const std::uint32_t below = step.motion == PathMotion::Both ? step.depth : step.depth + 1U;
    const ThreadNumbers<Number> lefts = at(false, below), rights = at(true, below);
    if (step.motion == PathMotion::Down) {
      const bool left = (split.flags & kLeftLeaf) == 0, right = (split.flags & kRightLeaf) == 0;
      FVM_NO_UNROLL
      for (std::uint32_t k = 0; k < points_; ++k, point += of_point) {
        const Number chance = own[k], to_left = chance * point[choice];
        lefts[k] = left ? to_left : all[SplitConstants::LeftValue];
        rights[k] = right ? chance - to_left : all[SplitConstants::RightValue];
      }
      return;
    }
    Number integral = 0;
    FVM_NO_UNROLL
    for (std::uint32_t k = 0; k < points_; ++k, point += of_point) {
      Number part = own[k], mean = point[choice];
      if (step.motion == PathMotion::Up) {
        const Number right = rights[k], difference = lefts[k] - right;
        part = part * difference;
        mean = right + mean * difference;
      }
      integral += four ? part * point[SplitConstants::PointSlope] : part;
      own[k] = mean;
    }
    sums_[split.sum] +=
        all[SplitConstants::IfLeft + choice] * integral + all[SplitConstants::FirstLeft + choice];
  }

  /// Adds what a split contributes to its pairs, before its own part is added.
  FVM_DEVICE void add_pairs(const PathTree& tree, const PathStep& step, const PathSplit& split,
                            const Number* constants) const {
    const std::uint32_t* const ends = tables_.pair_ends + tree.first_split;
    std::uint32_t pair = step.split == 0 ? 0 : ends[step.split - 1];
    const std::uint32_t end = ends[step.split];
    if (pair == end) return;
    const ThreadNumbers<Number> parts{&numbers_[std::size_t{2} * tables_.levels], numbers_.stride};
    set_parts(step, split, constants + split.constants, parts);
    const unsigned choice = choices_[step.depth];
    const Number factor = constants[split.constants + SplitConstants::IfLeft + choice];
    const Number first = constants[split.constants + SplitConstants::FirstLeft + choice];
    FVM_NO_UNROLL
    for (; pair != end; ++pair) {
      const PathPair with = tables_.pairs[tree.first_pair + pair];
      const std::uint8_t way = with.right ? SplitConstants::PointRight : SplitConstants::PointLeft;
      const bool taken = choices_[tables_.pair_depths[tree.first_pair + pair]] == way;
      const Number* const function = constants + (taken ? with.constants : points_);
      Number integral = 0;
      FVM_NO_UNROLL
      for (std::uint32_t k = 0; k < points_; ++k) integral += parts[k] * function[k + 1];
      sums_[with.sum] += factor * integral + first * function[0];
    }
  }

  /// Sets what a split adds to the integral at each point. `all` are its constants.
  FVM_DEVICE void set_parts(const PathStep& step, const PathSplit& split, const Number* all,
                            ThreadNumbers<Number> parts) const {
    const bool four = (split.flags & kFourConstants) != 0;
    const Number* point = all + SplitConstants::Count;
    const ThreadNumbers<Number> own = at(step.is_right != 0, step.depth);
    // At the deepest splits there is nothing below, and no room for it.
    const std::uint32_t below = step.motion == PathMotion::Both ? step.depth : step.depth + 1U;
    const ThreadNumbers<Number> lefts = at(false, below), rights = at(true, below);
    FVM_NO_UNROLL
    for (std::uint32_t k = 0; k < points_; ++k) {
      Number part = own[k];
      if (step.motion != PathMotion::Both) part = part * (lefts[k] - rights[k]);
      parts[k] = four ? part * point[SplitConstants::PointSlope] : part;
      point += four ? SplitConstants::FourConstants : SplitConstants::TwoConstants;
    }
  }

  const KindTables& tables_;
  const std::uint8_t* codes_;
  ThreadNumbers<Number> sums_, numbers_;
  ThreadNumbers<std::uint8_t> choices_;
  bool has_pairs_;
  std::uint32_t points_ = 0;
};

/// Adds the contributions, and the interactions that a call asks for, of the batches that the block takes, for the
/// thread's row.
template <class Number>
FVM_DEVICE void sum_batches(const Launch& launch, ExplainPart part, std::uint32_t row) {
  const KindTables& tables = *launch.program.kinds;
  const LaunchPass& pass = launch.pass;
  auto* const sums = reinterpret_cast<Number*>(pass.workspace);
  const bool shared = part == ExplainPart::SumInShared;
  const std::size_t stride = shared ? Device::extent(kGridDimensions) : pass.row_count;
  const std::size_t first = shared ? Device::index(kGridDimensions) : row;
  std::byte* const kept =
      shared ? Device::shared()
             : pass.workspace + std::size_t{tables.sum_count} * pass.row_count * sizeof(Number);
  const bool pairs = pass.output == OutputKind::Interactions;
  std::byte* const choices =
      kept + (std::size_t{2} * tables.levels + tables.points) * stride * sizeof(Number);
  const std::uint8_t* const codes = pass.codes + code_offset(row, launch.program.column_count);
  // Against a background, a tree of the model has any number of explained trees, and a call has all rounds.
  const bool to_last = pass.added.end == launch.program.num_trees;
  const std::uint32_t first_tree = pass.added.begin * tables.per_tree,
                      end_tree = to_last ? UINT32_MAX : pass.added.end * tables.per_tree;
  FVM_NO_UNROLL
  for (std::uint32_t b = Device::index(1); b < tables.batch_count; b += Device::extent(1)) {
    const PathBatch batch = tables.batches[b];
    const ThreadNumbers<Number> of_batch{sums + batch.first_total * pass.row_count + row, pass.row_count};
    FVM_NO_UNROLL
    for (std::uint32_t i = 0; i < batch.sums + (pairs ? batch.pair_sums : 0); ++i) of_batch[i] = 0;
    RowPaths<Number> paths(tables, pairs, codes, of_batch, {reinterpret_cast<Number*>(kept) + first, stride},
                           {reinterpret_cast<std::uint8_t*>(choices) + first, stride});
    FVM_NO_UNROLL
    for (std::size_t t = batch.first_tree; t < batch.end_tree; ++t) {
      const PathTree tree = tables.trees[t];
      if (tree.number >= first_tree && tree.number < end_tree) paths.add(tree);
    }
  }
}

/// Returns the total of a row's sums, of which the batches have some: they are added in float64, batch after batch.
template <class Number>
FVM_DEVICE double total_of(ThreadNumbers<const Number> sums, const std::uint32_t* terms, std::uint32_t begin,
                           std::uint32_t end) {
  double total = 0;
  FVM_NO_UNROLL
  for (std::uint32_t i = begin; i < end; ++i) total += static_cast<double>(sums[terms[i]]);
  return total;
}

/// Writes the interactions of a feature: a row of an output's matrix. The two features of a pair get half of its total
/// each, which is subtracted from what each of them contributes, pair after pair.
template <class Number, class Value>
FVM_DEVICE void write_interactions(const KindTables& tables, ThreadNumbers<const Number> sums,
                                   std::uint32_t number, std::uint32_t feature, double total, Value* to) {
  FVM_NO_UNROLL
  for (std::uint32_t f = 0; f <= tables.num_features; ++f) to[f] = 0;
  FVM_NO_UNROLL
  for (std::uint32_t i = tables.interacting_begins[number]; i < tables.interacting_begins[number + 1]; ++i) {
    const InteractingFeature other = tables.interacting[i];
    const double half = total_of(sums, tables.pair_terms, tables.pair_begins[other.pair],
                                 tables.pair_begins[other.pair + 1]) /
                        2;
    total -= half;
    to[other.feature] = static_cast<Value>(half);
  }
  to[feature] = static_cast<Value>(total);
}

/// Adds the contributions of leaves that are looked up: see PatternLeaf. `number` counts the features of all outputs.
FVM_DEVICE void add_looked_up(const KindTables& tables, const std::uint8_t* codes, std::uint32_t number,
                              double& total) {
  FVM_NO_UNROLL
  for (std::uint32_t i = tables.looked_up_begins[number]; i < tables.looked_up_begins[number + 1]; ++i) {
    const LookedUpFeature of = tables.looked_up[i];
    const LookedUpLeaf leaf = tables.looked_up_leaves[of.leaf];
    const std::uint32_t count = 1U << leaf.features;
    std::uint32_t pattern = count - 1;
    FVM_NO_UNROLL
    for (std::uint32_t t = leaf.first_test; t != leaf.end_test; ++t) {
      const PatternTest test = tables.pattern_tests[t];
      const std::uint8_t code = codes[std::size_t{test.column} * kCodeRows];
      if (code < test.low || code > test.high) pattern &= ~(1U << test.bit);
    }
    const double* const numbers = tables.pattern_numbers + leaf.first_number;
    total += numbers[pattern] - numbers[count + (pattern & ~(1U << of.bit))];
  }
}

/// Writes the thread's part of a row's contributions or interactions.
template <class Number, class Value>
FVM_DEVICE void write_contributions(const Launch& launch, std::uint32_t row, Value* to) {
  const KindTables& tables = *launch.program.kinds;
  const LaunchPass& pass = launch.pass;
  const ThreadNumbers<const Number> sums{reinterpret_cast<const Number*>(pass.workspace) + row,
                                         pass.row_count};
  const std::uint8_t* const codes = pass.codes + code_offset(row, launch.program.column_count);
  const std::uint32_t features = tables.num_features, terms = launch.program.num_outputs * (features + 1);
  const bool pairs = pass.output == OutputKind::Interactions;
  const std::size_t width = pairs ? features + 1 : 1;  // numbers of a feature
  to += std::size_t{row} * pass.value_width;
  FVM_NO_UNROLL
  for (std::uint32_t c = Device::index(1); c < terms; c += Device::extent(1)) {
    const std::uint32_t output = c / (features + 1), feature = c % (features + 1);
    Value* const mine = to + c * width;
    if (feature == features) {
      FVM_NO_UNROLL
      for (std::size_t f = 0; f + 1 < width; ++f) mine[f] = 0;
      mine[width - 1] =
          static_cast<Value>(pass.base_stride == 0 ? tables.expected[output]
                                                   : pass.base[std::size_t{row} * pass.base_stride + output]);
      continue;
    }
    const std::uint32_t number = output * features + feature;
    double total = total_of(sums, tables.terms, tables.term_begins[number], tables.term_begins[number + 1]);
    add_looked_up(tables, codes, number, total);
    if (pairs)
      write_interactions(tables, sums, number, feature, total, mine);
    else
      *mine = static_cast<Value>(total);
  }
}

}  // namespace forestvm::kernels
