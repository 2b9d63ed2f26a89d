// The host machine's instructions on sums: how they begin, are put together, and become scores.
#include <algorithm>

#include <forestvm/core/early_stop.hpp>
#include <forestvm/internal/calls.hpp>

#include "vm/host/machine.hpp"
#include "vm/host/reduce.hpp"

namespace forestvm::host {

/// Sets every row of an accumulator to `values`, one for each output, or to zero if `values` is null.
template <class Element>
void Machine::fill(std::uint32_t accumulator, const Range& rows, const double* values) const {
  Element* const begin = accumulator_row<Element>(accumulator, rows.begin);
  Element* const end = accumulator_row<Element>(accumulator, rows.end);
  if (values == nullptr) {
    std::fill(begin, end, Element{});
    return;
  }
  std::size_t k = 0;
  for (Element* sum = begin; sum != end; ++sum) {
    *sum = Element::of(values[k], loaded_->scale);
    if (++k == outputs_) k = 0;
  }
}

/// Returns a margin of the call, in the type of the program's scores.
double Machine::margin(std::uint32_t row, std::size_t output) const {
  const double margin = margin_at(pass_->options.base_margin, (pass_->first_row + row) * outputs_ + output);
  const bool wide = loaded_->meta.score_type == ScalarType::Float64;
  return wide ? margin : static_cast<double>(static_cast<float>(margin));
}

/// Sets every row of an accumulator to the margins of the call.
template <class Element>
void Machine::fill_margins(std::uint32_t accumulator, const Range& rows) const {
  for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
    Element* const sums = accumulator_row<Element>(accumulator, row);
    for (std::size_t k = 0; k < outputs_; ++k) sums[k] = Element::of(margin(row, k), loaded_->scale);
  }
}

void Machine::init(const Inst& inst) {
  const auto args = operands<Op::Init>(inst);
  const Range& rows = ranges[args.rows];
  with_element(args.acc_out, [&]<class Element>() {
    if (pass_->options.base_margin.data != nullptr)
      fill_margins<Element>(args.acc_out, rows);
    else
      fill<Element>(args.acc_out, rows, loaded_->base.data());
  });
}

void Machine::zero(const Inst& inst) {
  const auto args = operands<Op::Zero>(inst);
  const Range& rows = ranges[args.rows];
  with_element(args.acc_out, [&]<class Element>() { fill<Element>(args.acc_out, rows, nullptr); });
}

void Machine::add_base(const Inst& inst) {
  const auto args = operands<Op::AddBase>(inst);
  const Range& rows = ranges[args.rows];
  if (loaded_->meta.scale != 1)  // the verifier has checked that it holds scores
    with_scores(args.acc_out, [&]<class Score>() {
      Score* const begin = accumulator_row<Score>(args.acc_out, rows.begin);
      for (std::size_t i = 0; i < rows.size() * outputs_; ++i)
        begin[i] *= static_cast<Score>(loaded_->meta.scale);
    });
  const bool margins = pass_->options.base_margin.data != nullptr;
  with_element(args.acc_out, [&]<class Element>() {
    for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
      Element* sums = accumulator_row<Element>(args.acc_out, row);
      for (std::size_t k = 0; k < outputs_; ++k)
        forestvm::add_base(sums[k], margins ? margin(row, k) : loaded_->base[k], loaded_->scale);
    }
  });
}

void Machine::privatize(const Inst& inst) {
  const auto args = operands<Op::Privatize>(inst);
  const LoadedAccumulator& desc = loaded_->accumulators[args.acc_out];
  const std::uint32_t iteration = ranges[args.range_in].iteration;
  copies_[args.acc_out] = copies_[desc.parent] * desc.iterations + iteration;
  if (desc.storage != args.acc_out) return;  // its memory is another accumulator's, and a reduction sets it
  const Range& rows = ranges[args.rows];
  with_element(args.acc_out, [&]<class Element>() { fill<Element>(args.acc_out, rows, nullptr); });
}

void Machine::reduce(const OperandsOf<Op::ReduceDim>& args, bool in_place) {
  const std::uint32_t to = args.acc_out, from = args.acc_in;
  const Range& rows = ranges[args.rows];
  const LoopOperands loop = loop_operands(loaded_->code[args.loop]);
  const std::uint32_t count = iterations(ranges[loop.in].size(), loop.step);
  const std::uint32_t first = copies_[to] * loaded_->accumulators[from].iterations;
  with_element(to, [&]<class Element>() {
    const std::size_t size = rows.size() * loaded_->accumulators[to].width;
    Element* sums = in_place ? accumulator_row<Element>(from, first, rows.begin)
                             : accumulator_row<Element>(to, rows.begin);
    if (in_place && count == 0) std::fill(sums, sums + size, Element{});
    for (std::uint32_t i = in_place ? 1 : 0; i < count; ++i) {
      const Element* more = accumulator_row<Element>(from, first + i, rows.begin);
      add_copy(sums, more, size, args.width);
    }
  });
}

void Machine::reduce_dim(const Inst& inst) { reduce(operands<Op::ReduceDim>(inst), false); }
void Machine::reduce_inplace(const Inst& inst) { reduce(operands<Op::ReduceInplace>(inst), true); }

void Machine::round(const Inst& inst) {
  const auto args = operands<Op::Round>(inst);
  const std::uint32_t to = args.acc_out, from = args.acc_in;
  const Range& rows = ranges[args.rows];
  with_element(from, [&]<class Element>() {
    with_scores(to, [&]<class Score>() {
      const Element* sums = accumulator_row<Element>(from, rows.begin);
      Score* rounded = accumulator_row<Score>(to, rows.begin);
      for (std::size_t i = 0; i < rows.size() * outputs_; ++i)
        rounded[i] = sums[i].template rounded<Score>(loaded_->scale);
    });
  });
}

namespace {

/// The number of trees by which vectors are prefetched ahead, because they are scattered in memory.
constexpr std::size_t kVectorsAhead = 8;

template <class Score>
void add_vectors(const LeafVectors& vectors, const Score* leaves, std::size_t trees, Score* sums) {
  for (std::size_t t = 0; t < trees; ++t) {
    if (t + kVectorsAhead < trees) __builtin_prefetch(leaf_vector(vectors, leaves[t + kVectorsAhead]));
    add_vector(sums, leaf_vector(vectors, leaves[t]), vectors.width);
  }
}

}  // namespace

/// Adds the leaves of some trees to a row's sums. If leaves are numbers of vectors or functions, adds what they
/// stand for.
template <class Score>
void Machine::add_leaves(const Score* leaves, std::uint32_t row, const Range& trees, Score* sums) const {
  if (loaded_->vectors.count != 0)
    return add_vectors(loaded_->vectors, leaves + trees.begin, trees.size(), sums);
  const std::uint32_t* const outputs = loaded_->tree_outputs.data();
  if (loaded_->functions.empty()) {
    for (std::uint32_t t = trees.begin; t < trees.end; ++t) sums[outputs[t]] += leaves[t];
    return;
  }
  const double* const values = pass_->leaf_values + std::size_t{row} * loaded_->functions.features().size();
  const auto output = [&](std::uint32_t tree) {
    return static_cast<Score>(
        loaded_->leaf_blocks.output(loaded_->functions, static_cast<double>(leaves[tree]), values));
  };
  if (outputs_ == 1) {
    Score sum = sums[0];
    for (std::uint32_t t = trees.begin; t < trees.end; ++t) sum += output(t);
    sums[0] = sum;
    return;
  }
  for (std::uint32_t t = trees.begin; t < trees.end; ++t) sums[outputs[t]] += output(t);
}

/// Adds the leaves of a row, round after round, until its scores are decided: see EarlyStop.
template <class Score>
void Machine::add_until_decided(const Score* leaves, std::uint32_t row, Score* sums) const {
  const auto outputs = static_cast<std::uint32_t>(outputs_);
  const EarlyStop& stop = *pass_->options.early_stop;
  const Range all{0, loaded_->meta.num_trees, 0};
  const auto step = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{stop.every} * outputs, std::max(all.end, 1u)));
  for (std::uint32_t i = 0; i < iterations(all.size(), step); ++i) {
    const Range trees = chunk(all, step, i);
    add_leaves(leaves, row, trees, sums);
    if (is_decided(loaded_->meta.early_stop, sums, outputs, stop.margin)) return;
  }
}

void Machine::sum_trees(const Inst& inst) {
  const auto args = operands<Op::SumTrees>(inst);
  const std::uint32_t to = args.acc_out, from = args.acc_in;
  const Range& rows = ranges[args.rows];
  const Range all{0, loaded_->meta.num_trees, 0};
  const std::span<const std::uint32_t> features = loaded_->functions.features();
  if (!features.empty())
    pass_->source->copy_features(pass_->first_row + rows.begin, rows.size(), features,
                                 pass_->leaf_values + std::size_t{rows.begin} * features.size());
  with_scores(to, [&]<class Score>() {
    for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
      const Score* const leaves = accumulator_row<Score>(from, row);
      Score* const sums = accumulator_row<Score>(to, row);
      if (pass_->options.early_stop)
        add_until_decided(leaves, row, sums);
      else
        add_leaves(leaves, row, all, sums);
    }
  });
}

}  // namespace forestvm::host
