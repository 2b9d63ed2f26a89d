// The host machine's instructions that turn the scores of rows into values and labels, by any transform, in float32 and
// float64, and those that compute contributions to scores, exact and approximate, and interactions.
#include <algorithm>

#include <forestvm/core/transform.hpp>

#include "vm/host/machine.hpp"

namespace forestvm::host {

void Machine::transform(const Inst& inst) {
  const auto args = operands<Op::Transform>(inst);
  const Range& rows = ranges[args.rows];
  with_scores(args.acc_out, [&]<class Score>() {
    for (std::uint32_t row = rows.begin; row < rows.end; ++row)
      transform_row(args.transform_kind, accumulator_row<Score>(args.acc_out, row),
                    static_cast<std::uint32_t>(outputs_), pass_->parameters);
  });
}

void Machine::label(const Inst& inst) {
  const auto args = operands<Op::Label>(inst);
  if (pass_->labels == nullptr) return;
  const Range& rows = ranges[args.rows];
  const auto outputs = static_cast<std::uint32_t>(outputs_);
  const std::size_t width = label_width(args.rule, outputs, loaded_->parameters.group_ends);
  with_scores(args.acc_in, [&]<class Score>() {
    for (std::uint32_t row = rows.begin; row < rows.end; ++row)
      label_row(args.rule, accumulator_row<Score>(args.acc_in, row), outputs, pass_->labels + row * width,
                pass_->parameters);
  });
}

namespace {

/// Writes the contributions to one output of up to 64 rows. `to` is where the first row's contributions begin; the
/// next row's begin `stride` numbers further on.
template <class Value>
void write_contributions(const LoadedPaths& paths, const PathOutput& output, const double* totals,
                         unsigned rows, std::uint32_t features, std::size_t stride, Value* to) {
  constexpr unsigned kTotalsAtOnce = 8;  // few enough to stay in the first-level cache
  for (unsigned row = 0; row < rows; ++row) {
    if (output.features != features) std::fill_n(to + row * stride, features, Value{0});
    to[row * stride + features] = static_cast<Value>(output.expected);
  }
  const std::uint32_t* const numbers = paths.features.data() + output.first_feature;
  for (std::uint32_t begin = 0; begin < output.features; begin += kTotalsAtOnce) {
    const std::uint32_t end = std::min(output.features, begin + kTotalsAtOnce);
    for (unsigned row = 0; row < rows; ++row)
      for (std::uint32_t i = begin; i < end; ++i)
        to[row * stride + numbers[i]] = static_cast<Value>(totals[std::size_t{i} * kCodeRows + row]);
  }
}

/// Halves the totals of pairs and subtracts the halves from the totals of both features. What each feature contributes
/// alone remains.
void part_pairs(const LoadedPaths& paths, const PathOutput& output, double* totals) {
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

/// Writes the interactions of one output, from parted totals: see write_contributions.
template <class Value>
void write_interactions(const LoadedPaths& paths, const PathOutput& output, const double* totals,
                        unsigned rows, std::uint32_t features, std::size_t stride, Value* to) {
  const std::size_t width = std::size_t{features} + 1;
  const std::uint32_t* const numbers = paths.features.data() + output.first_feature;
  for (unsigned row = 0; row < rows; ++row, to += stride, ++totals) {
    std::fill_n(to, width * width, Value{0});
    to[width * width - 1] = static_cast<Value>(output.expected);
    for (std::size_t i = 0; i < output.features; ++i)
      to[numbers[i] * (width + 1)] = static_cast<Value>(totals[i * kCodeRows]);
    for (std::size_t i = 0; i < output.pairs; ++i) {
      const TotalPair& pair = paths.total_pairs[output.first_pair + i];
      const std::size_t first = numbers[pair.first], second = numbers[pair.second];
      const auto value = static_cast<Value>(totals[(output.features + i) * kCodeRows]);
      to[first * width + second] = to[second * width + first] = value;
    }
  }
}

}  // namespace

void Machine::explain(const Inst& inst) {
  const Range rows = ranges[operands<Op::Explain>(inst).rows];
  const LoadedPaths& paths = loaded_->paths;
  const bool pairs = pass_->output == OutputKind::Interactions;
  const std::uint32_t features = loaded_->meta.num_features;
  const std::size_t width = (std::size_t{features} + 1) * (pairs ? std::size_t{features} + 1 : 1);
  const std::size_t stride = outputs_ * width;
  const std::size_t columns = loaded_->columns;
  const ScratchSlots::Slot slot(*pass_->slots);
  auto* const totals = reinterpret_cast<double*>(slot.memory() + ExplainScratch(paths).totals);
  for (std::uint32_t row = rows.begin; row < rows.end;) {
    const std::uint32_t count = std::min(kCodeRows - row % kCodeRows, rows.end - row);
    for (std::size_t k = 0; k < outputs_; ++k) {
      const PathOutput& output = paths.outputs[k];
      loaded_->target->explain(
          {&paths, &output, pass_->codes + code_offset(row, columns), count, slot.memory(), pairs});
      if (pairs) part_pairs(paths, output, totals);
      const std::size_t at = row * stride + k * width;
      const auto write = [&](auto* to) {
        if (pairs)
          write_interactions(paths, output, totals, count, features, stride, to);
        else
          write_contributions(paths, output, totals, count, features, stride, to);
      };
      if (pass_->wide_values != nullptr)
        write(pass_->wide_values + at);
      else
        write(pass_->values + at);
    }
    row += count;
  }
}

/// Adds what the leaves of some rows attribute to features, tree after tree, and writes the sums.
template <class Score>
void Machine::attribute_rows(const Range& rows) const {
  const Program& program = loaded_->program;
  const auto trees = program.attributed_trees();
  const std::uint32_t* const leaves = program.attributed_leaves().data();
  const Attribution* const attributions = program.attributions().data();
  const auto base = program.attribution_base();
  const std::size_t width = pass_->width, terms = width / outputs_;
  const ScratchSlots::Slot slot(*pass_->slots);
  auto* const sums = reinterpret_cast<Score*>(slot.memory());
  const std::int32_t* numbers = pass_->leaves + rows.begin * trees.size();
  for (std::uint32_t row = rows.begin; row < rows.end; ++row, numbers += trees.size()) {
    std::fill_n(sums, width, Score{0});
    for (std::size_t t = 0; t < trees.size(); ++t) {
      const auto number = static_cast<std::uint32_t>(numbers[t]);
      if (number >= trees[t].leaf_count) continue;  // in a damaged program only
      const std::uint32_t* const leaf = leaves + trees[t].first_leaf + number;
      for (std::uint32_t i = leaf[0]; i < leaf[1]; ++i)
        sums[attributions[i].place] += static_cast<Score>(attributions[i].value);
    }
    for (std::size_t k = 0; k < outputs_; ++k) sums[(k + 1) * terms - 1] = static_cast<Score>(base[k]);
    if (pass_->wide_values != nullptr)
      std::transform(sums, sums + width, pass_->wide_values + row * width,
                     [](Score sum) { return static_cast<double>(sum); });
    else
      std::transform(sums, sums + width, pass_->values + row * width,
                     [](Score sum) { return static_cast<float>(sum); });
  }
}

void Machine::attribute(const Inst& inst) {
  const Range& rows = ranges[operands<Op::Attribute>(inst).rows];
  if (loaded_->meta.score_type == ScalarType::Float64)
    attribute_rows<double>(rows);
  else
    attribute_rows<float>(rows);
}

}  // namespace forestvm::host
