// The host machine's instructions that compute outputs of single trees, of stages, and of how sure a model is. Where
// walks add in the model's order, the outputs of trees and stages are written while trees are walked.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include <forestvm/internal/calls.hpp>

#include "vm/host/large_results.hpp"
#include "vm/host/machine.hpp"
#include "vm/host/member_uncertainty.hpp"
#include "vm/host/targets/target.hpp"
#include "vm/host/tree_rows.hpp"

namespace forestvm::host {

namespace {

/// The rows, and the trees, whose leaves are transposed together: the leaves of a row or tree fill a cache line, and
/// the rows' outputs lie on few pages.
constexpr std::uint32_t kTransposed = kTreeRows;

template <class Score>
using SumOf = std::conditional_t<std::is_same_v<Score, double>, F64Sum, F32Sum>;

}  // namespace

/// Writes a number of the output.
template <class Score>
void Machine::put(std::size_t at, Score number) const {
  if (pass_->wide_values != nullptr)
    pass_->wide_values[at] = static_cast<double>(number);
  else
    pass_->values[at] = static_cast<float>(number);
}

/// Writes the outputs of some trees' leaves for some rows, which lie in one block of rows.
template <class Score>
void Machine::store_leaves(std::uint32_t from, const Range& rows, const Range& trees) const {
  const LeafOffsets offsets = leaf_offsets();
  const Score* const leaves = leaves_of<Score>(from) + offsets.at(rows.begin, trees.begin);
  const std::size_t width = pass_->width;
  const std::size_t numbers = loaded_->vectors.count != 0 ? outputs_ : 1;
  std::size_t to = rows.begin * width + numbers * (trees.begin - pass_->first_tree);
  for (std::uint32_t i = 0; i < rows.size(); ++i, to += width)
    for (std::uint32_t t = 0; t < trees.size(); ++t) {
      Score leaf = leaves[std::size_t{t} * offsets.stride + i];
      const Score* adds = &leaf;
      if (loaded_->vectors.count != 0)
        adds = leaf_vector(loaded_->vectors, leaf);
      else if (!loaded_->functions.empty())
        leaf = static_cast<Score>(leaf_output(rows.begin + i, static_cast<double>(leaf)));
      for (std::size_t k = 0; k < numbers; ++k) put(to + t * numbers + k, adds[k]);
    }
}

// Cold, so that it is compiled for size: the target's function takes the time.
[[gnu::cold]] void Machine::store_trees(const Inst& inst) {
  const auto args = operands<Op::StoreTrees>(inst);
  const Range& rows = ranges[args.rows];
  Range trees = pass_->trees;
  read_leaf_values(rows);
  const bool wide = loaded_->accumulators[args.acc_in].kind == AccumulatorKind::PerTree64;
  // A chunk of the call's trees is written with the last ones of the chunk before, whose leaves are kept.
  const std::uint32_t first = std::max(pass_->kept.begin, pass_->first_tree);
  const bool in_lines = !wide && loaded_->vectors.count == 0 && loaded_->functions.empty() &&
                        pass_->values != nullptr && trees.end - first >= kTransposed;
  if (in_lines) trees.begin = first;
  const bool begins = trees.begin == pass_->first_tree, ends = trees.end - pass_->first_tree == pass_->width;
  const LeafOffsets offsets = leaf_offsets();
  const bool is_large = is_large_result(pass_->row_count * pass_->width * sizeof(float));
  LeafOffsets::for_parts(rows, kTransposed, [&](Range some) {
    // The last rows of a block are written with some before, a second time, so that they are as many.
    const bool enough = some.end - rows.begin >= kTransposed && (some.end - 1) % kCodeRows + 1 >= kTransposed;
    if (in_lines && enough) {
      some.begin = some.end - kTransposed;
      return loaded_->target->store_trees(
          {leaves_of<float>(args.acc_in) + offsets.at(some.begin, trees.begin), offsets.stride, trees.size(),
           pass_->values + some.begin * pass_->width + trees.begin - pass_->first_tree, pass_->width,
           is_large, begins, ends});
    }
    for (std::uint32_t c = 0; c < iterations(trees.size(), kTransposed); ++c) {
      const Range part = chunk(trees, kTransposed, c);
      wide ? store_leaves<double>(args.acc_in, some, part) : store_leaves<float>(args.acc_in, some, part);
    }
  });
  finish_result(is_large);
  if (!in_lines || ends) return;
  // Keeps the leaves of the last trees for the next chunk: their lines have outputs of its trees, too.
  LeafOffsets::for_parts(rows, kCodeRows, [&](const Range& some) {
    float* const leaves = leaves_of<float>(args.acc_in);
    float* const to = leaves + offsets.at(some.begin, pass_->kept.begin);
    const float* const last = leaves + offsets.at(some.begin, trees.end - kTransposed);
    for (std::size_t t = 0; t < kTransposed; ++t)
      std::copy_n(last + t * offsets.stride, some.size(), to + t * offsets.stride);
  });
}

/// Returns the trees of a stage of the call.
Range Machine::stage_trees(std::uint32_t stage) const {
  const auto begins = loaded_->program.round_begins();
  const Rounds rounds = rounds_of(loaded_->program, *pass_->options);
  const std::uint32_t every = pass_->options->every, first = rounds.begin + stage * every;
  const std::uint32_t end = every < rounds.end - first ? first + every : rounds.end;
  return {begins[first], begins[end], 0};
}

namespace {

/// Writes the sums of some rows, `outputs` of each, `width` numbers apart.
template <class Score, class Number>
void store_sums(const Score* sums, std::uint32_t rows, std::size_t outputs, Number* to, std::size_t width) {
  if (outputs == 1) {
    for (std::uint32_t i = 0; i < rows; ++i) to[i * width] = static_cast<Number>(sums[i]);
    return;
  }
  for (std::uint32_t i = 0; i < rows; ++i, sums += outputs, to += width) {
    std::size_t k = 0;
    for (; k + 4 <= outputs; k += 4) {
      // Loops of so few turns take less time in vectors of a known size.
      Number four[4];
      for (std::size_t j = 0; j < 4; ++j) four[j] = static_cast<Number>(sums[k + j]);
      std::memcpy(to + k, four, sizeof four);
    }
    for (; k < outputs; ++k) to[k] = static_cast<Number>(sums[k]);
  }
}

}  // namespace

/// Writes the sums of some rows as the scores of a stage, which get base scores if `base_last`.
void Machine::store_stage(std::uint32_t accumulator, const Range& rows, std::uint32_t stage,
                          bool base_last) const {
  const std::size_t first = rows.begin * pass_->width + stage * outputs_;
  with_scores(accumulator, [&]<class Score>() {
    const Score* const sums = accumulator_row<Score>(accumulator, rows.begin);
    const auto store = [&](auto* to, const auto& score_of) {
      using Number = std::remove_reference_t<decltype(*to)>;
      const Score* from = sums;
      for (std::uint32_t row = rows.begin; row < rows.end; ++row, to += pass_->width)
        for (std::size_t k = 0; k < outputs_; ++k) to[k] = static_cast<Number>(score_of(*from++, row, k));
    };
    const auto store_scores = [&](auto* to) {
      if (!base_last) return store_sums(sums, rows.size(), outputs_, to, pass_->width);
      store(to, [&](Score sum, std::uint32_t row, std::size_t k) {
        if (loaded_->meta.scale != 1) sum *= static_cast<Score>(loaded_->meta.scale);
        SumOf<Score> score{sum};
        forestvm::add_base(score, base(row, k), loaded_->scale);
        return score.value;
      });
    };
    pass_->wide_values != nullptr ? store_scores(pass_->wide_values + first)
                                  : store_scores(pass_->values + first);
  });
}

/// Walks the trees of one stage after the other, and writes the sums after each. LoadedProgram::stages is not Leaves,
/// so that a row's walks take the trees in the model's order, and the program counts trees as the model does.
[[gnu::cold]] void Machine::walk_stages(const LoadedWalker& walker, WalkTask& task,
                                        std::uint32_t accumulator) const {
  const bool base_last = loaded_->stages == StageRule::WalksToBase;
  const Range trees = task.tree_range;
  const auto stages = static_cast<std::uint32_t>(pass_->width / outputs_);
  const auto begins = loaded_->program.round_begins();
  const auto after = std::upper_bound(begins.begin(), begins.end(), trees.begin);
  const auto round = static_cast<std::uint32_t>(after - begins.begin() - 1);
  std::uint32_t stage = (round - rounds_of(loaded_->program, *pass_->options).begin) / pass_->options->every;
  for (std::uint32_t tree = trees.begin; tree < trees.end;) {
    task.tree_range = {tree, std::min(stage_trees(stage).end, trees.end), 0};
    walker.walk(task);
    tree = task.tree_range.end;
    for (; stage < stages && stage_trees(stage).end == tree; ++stage)
      store_stage(accumulator, task.row_range, stage, base_last);
  }
}

/// Writes the scores of virtual ensembles for some rows: ensemble after ensemble, output after output. As in CatBoost,
/// the trees before the first one's last rounds, and those between the ends of two ensembles, are added up by
/// themselves.
[[gnu::cold]] void Machine::add_members(const OperandsOf<Op::StoreStages>& args, const Range& rows,
                                        double* members) const {
  const auto begins = loaded_->program.round_begins();
  const std::uint32_t end = rounds_of(loaded_->program, *pass_->options).end;
  const std::uint32_t count = pass_->options->ensembles, period = end / 2 / count;
  const std::size_t width = outputs_ * count;
  std::uint32_t first = 0, last = end - period * count;
  for (std::uint32_t piece = 0; piece <= count; ++piece, first = last, last += period) {
    const Range trees{begins[first], begins[last], 0};
    const std::size_t to = piece == 0 ? 0 : (piece - 1) * outputs_;
    with_scores(
        args.acc_out, [&]<class Score>() __attribute__((cold)) {
          fill<SumOf<Score>>(args.acc_out, rows, nullptr);
          add_leaves<Score>(args.acc_out, args.acc_in, rows, trees);
          for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
            double* const mine = members + (row - rows.begin) * width + to;
            for (std::size_t k = 0; k < outputs_; ++k) {
              const double sum =
                  static_cast<double>(accumulator_row<Score>(args.acc_out, row)[k]) * loaded_->meta.scale;
              if (piece == 0)
                mine[k] = sum + base(row, k);
              else
                mine[k] = sum + mine[k - (piece == 1 ? 0 : outputs_)];
            }
          }
        });
  }
  for (std::uint32_t e = 0; e < count; ++e) {
    const double factor = ensemble_factor(loaded_->program, period * (count - 1 - e));
    for (std::uint32_t i = 0; i < rows.size(); ++i)
      for (std::size_t k = 0; k < outputs_; ++k) members[i * width + e * outputs_ + k] *= factor;
  }
}

[[gnu::cold]] void Machine::store_members(const OperandsOf<Op::StoreStages>& args) const {
  const std::uint32_t count = pass_->options->ensembles;
  const std::size_t width = outputs_ * count;
  const ScratchSlots::Slot slot(*pass_->slots);
  auto* const members = reinterpret_cast<double*>(slot.memory());
  LeafOffsets::for_parts(ranges[args.rows], rows_together(width, kCodeRows), [&](const Range& some) {
    add_members(args, some, members);
    for (std::uint32_t row = some.begin; row < some.end; ++row) {
      double* const mine = members + (row - some.begin) * width;
      const UncertaintyRule rule = loaded_->program.uncertainty()[0].rule;
      if (rule == UncertaintyRule::Gaussian) predict_variances(mine, count);
      if (pass_->output == OutputKind::VirtEnsembles) {
        for (std::size_t i = 0; i < width; ++i) put(row * width + i, mine[i]);
        continue;
      }
      double numbers[3];
      uncertainty_of(rule, mine, count, outputs_, numbers);
      for (std::size_t i = 0; i < pass_->width; ++i) put(row * pass_->width + i, numbers[i]);
    }
  });
}

/// Writes the mean and the variance of the trees' scores for some rows, for each output. The mean is a sum in the type
/// of the scores, in the model's order, as the value is.
template <class Score>
[[gnu::cold]] void Machine::store_spread(std::uint32_t from, const Range& rows) const {
  const LeafOffsets offsets = leaf_offsets();
  const bool vectors = loaded_->vectors.count != 0;
  for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
    const auto score = [&](std::uint32_t t, std::size_t k) {
      const Score leaf = leaves_of<Score>(from)[offsets.at(row, t)];
      if (vectors) return leaf_vector(loaded_->vectors, leaf)[k];
      if (loaded_->functions.empty()) return leaf;
      return static_cast<Score>(leaf_output(row, static_cast<double>(leaf)));
    };
    for (std::size_t k = 0; k < outputs_; ++k) {
      Score sum = 0;
      std::uint32_t count = 0;
      const auto for_trees = [&](const auto& visit) {
        for (std::uint32_t t = pass_->trees.begin; t < pass_->trees.end; ++t)
          if (vectors || loaded_->tree_outputs[t] == k) visit(score(t, k));
      };
      for_trees([&](Score mine) {
        sum += mine;
        ++count;
      });
      const Score mean = count == 0 ? sum : sum / static_cast<Score>(count);
      double squares = 0;
      for_trees([&](Score mine) {
        const double distance = static_cast<double>(mine) - static_cast<double>(mean);
        squares += distance * distance;
      });
      put(row * pass_->width + 2 * k, mean);
      put(row * pass_->width + 2 * k + 1, count == 0 ? squares : squares / count);
    }
  }
}

void Machine::store_stages(const Inst& inst) {
  const auto args = operands<Op::StoreStages>(inst);
  const Range& all = ranges[args.rows];
  const bool wide = loaded_->accumulators[args.acc_out].kind == AccumulatorKind::F64;
  read_leaf_values(all);
  if (pass_->output != OutputKind::Staged) {
    if (loaded_->program.uncertainty()[0].rule != UncertaintyRule::Trees) return store_members(args);
    return wide ? store_spread<double>(args.acc_in, all) : store_spread<float>(args.acc_in, all);
  }
  const std::size_t stages = pass_->width / outputs_;
  LeafOffsets::for_parts(all, rows_together(outputs_, kCodeRows), [&](const Range& some) {
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
      with_scores(args.acc_out, [&]<class Score>() {
        add_leaves<Score>(args.acc_out, args.acc_in, some, stage_trees(stage));
      });
      store_stage(args.acc_out, some, stage, args.base_last != 0);
    }
  });
}

}  // namespace forestvm::host
