// The host machine's instruction that computes exact contributions of features to scores, and interactions. Writing
// them takes little of the time, so this file is compiled for size.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include <forestvm/internal/calls.hpp>

#include "vm/host/machine.hpp"

namespace forestvm::host {
namespace {

/// The numbers of an output's totals to be written for a call.
struct TotalsToWrite {
  const HostPaths& paths;
  const PathOutput& output;
  const double* totals;
  const double* expected;       ///< The expected score of each row.
  const std::uint32_t* chosen;  ///< Pass::output_indices
  unsigned rows;                ///< Number of rows, up to kCodeRows.
  std::size_t features;         ///< Features whose numbers are written: those of the call, or all.
  std::size_t stride;           ///< Numbers from one row's output to the next's.

  /// Returns the index of the feature that has total `i`.
  std::uint32_t index(std::size_t i) const {
    const std::uint32_t feature = paths.features[output.first_feature + i];
    return chosen == nullptr ? feature : chosen[feature];
  }
};

/// Writes contributions. `to` is where those of the first row begin.
template <class Value>
void write_contributions(const TotalsToWrite& all, Value* to) {
  constexpr unsigned kTotalsAtOnce = 8;  // few enough to stay in the first-level cache
  const std::uint32_t tested = all.output.features;
  for (unsigned row = 0; row < all.rows; ++row) {
    if (tested != all.features) std::memset(to + row * all.stride, 0, all.features * sizeof *to);
    to[row * all.stride + all.features] = static_cast<Value>(all.expected[row]);
  }
  for (std::uint32_t begin = 0; begin < tested; begin += kTotalsAtOnce) {
    const std::uint32_t end = std::min(tested, begin + kTotalsAtOnce);
    std::uint32_t indices[kTotalsAtOnce];
    for (std::uint32_t i = begin; i < end; ++i) indices[i - begin] = all.index(i);
    for (unsigned row = 0; row < all.rows; ++row)
      for (std::uint32_t i = begin; i < end; ++i)
        if (const std::uint32_t index = indices[i - begin]; index != kLeftOut)
          to[row * all.stride + index] = static_cast<Value>(all.totals[std::size_t{i} * kCodeRows + row]);
  }
}

/// Halves the totals of pairs and subtracts the halves from the totals of both features. What each feature contributes
/// alone remains.
void part_pairs(const HostPaths& paths, const PathOutput& output, double* totals) {
  for (std::size_t i = 0; i < output.pairs; ++i) {
    const TotalPair& pair = paths.total_pairs[output.first_pair + i];
    double* const both = totals + (output.features + i) * kCodeRows;
    double* const first = totals + std::size_t{pair.first} * kCodeRows;
    double* const second = totals + std::size_t{pair.second} * kCodeRows;
    for (unsigned row = 0; row < kCodeRows; ++row) {
      both[row] /= 2;
      first[row] -= both[row];
      second[row] -= both[row];
    }
  }
}

/// Writes interactions from parted totals: see write_contributions.
template <class Value>
void write_interactions(const TotalsToWrite& all, Value* to) {
  const std::size_t width = all.features + 1;
  const PathOutput& output = all.output;
  const double* totals = all.totals;
  for (unsigned row = 0; row < all.rows; ++row, to += all.stride, ++totals) {
    std::memset(to, 0, width * width * sizeof *to);
    to[width * width - 1] = static_cast<Value>(all.expected[row]);
    for (std::size_t i = 0; i < output.features; ++i)
      if (const std::size_t index = all.index(i); index != kLeftOut)
        to[index * (width + 1)] = static_cast<Value>(totals[i * kCodeRows]);
    for (std::size_t i = 0; i < output.pairs; ++i) {
      const TotalPair& pair = all.paths.total_pairs[output.first_pair + i];
      const std::size_t first = all.index(pair.first), second = all.index(pair.second);
      if (first == kLeftOut || second == kLeftOut) continue;
      const auto value = static_cast<Value>(totals[(output.features + i) * kCodeRows]);
      to[first * width + second] = to[second * width + first] = value;
    }
  }
}

/// Sets the range of an output's trees that are among the explained trees from `begin` on and before `end`.
void choose_trees(std::uint32_t begin, std::uint32_t end, ExplainTask& task) {
  const HostPaths& paths = *task.paths;
  std::size_t tree = paths.batches[task.output->first_batch].first_tree;
  const std::size_t last = paths.batches[task.output->end_batch - 1].end_tree;
  while (tree < last && paths.trees[tree].number < begin) ++tree;
  task.first_tree = tree;
  while (tree < last && paths.trees[tree].number < end) ++tree;
  task.end_tree = tree;
}

}  // namespace

void Machine::explain(const Inst& inst) {
  const Range rows = ranges[operands<Op::Explain>(inst).rows];
  const HostPaths& paths = loaded_->paths;
  const bool pairs = pass_->output == OutputKind::Interactions;
  const std::size_t chosen = pass_->options->features.size();
  const std::size_t features = chosen != 0 ? chosen : loaded_->meta.num_features;
  const std::size_t stride = pass_->width, width = stride / outputs_;
  const std::size_t columns = loaded_->columns;
  const bool has_margins = pass_->options->base_margin.data != nullptr;
  const bool all_trees = !pass_->options->rounds;
  const std::uint32_t each = explained_per_tree(loaded_->program);
  const std::uint32_t begin = pass_->trees.begin * each, end = pass_->trees.end * each;
  const ScratchSlots::Slot slot(*pass_->slots);
  auto* const totals = reinterpret_cast<double*>(slot.memory() + ExplainScratch(paths).totals);
  for (std::uint32_t row = rows.begin; row < rows.end;) {
    const std::uint32_t count = std::min(kCodeRows - row % kCodeRows, rows.end - row);
    for (std::size_t k = 0; k < outputs_; ++k) {
      const PathOutput& output = paths.outputs[k];
      ExplainTask task{
          &paths, &output,  pass_->codes + code_offset(row, columns), count, slot.memory(), pairs, 0,
          0,      all_trees};
      if (!all_trees && output.first_batch != output.end_batch) choose_trees(begin, end, task);
      loaded_->target->explain(task);
      if (pairs) part_pairs(paths, output, totals);
      double expected[kCodeRows];
      std::fill_n(expected, count, output.expected);
      if (has_margins || !all_trees) [[unlikely]] {
        const double mean = all_trees ? output.mean : mean_of_trees(loaded_->program, k, begin, end);
        for (std::uint32_t i = 0; i < count; ++i) expected[i] = mean + base(row + i, k);
      }
      const std::size_t at = row * stride + k * width;
      const TotalsToWrite all{paths, output,   totals, expected, pass_->output_indices,
                              count, features, stride};
      const auto write = [&](auto* to) {
        pairs ? write_interactions(all, to) : write_contributions(all, to);
      };
      if (pass_->wide_values != nullptr)
        write(pass_->wide_values + at);
      else
        write(pass_->values + at);
    }
    row += count;
  }
}

}  // namespace forestvm::host
