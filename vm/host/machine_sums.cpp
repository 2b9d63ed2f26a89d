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
  const double margin = margin_at(pass_->options->base_margin, (pass_->first_row + row) * outputs_ + output);
  const bool wide = loaded_->meta.score_type == ScalarType::Float64;
  return wide ? margin : static_cast<double>(static_cast<float>(margin));
}

/// Returns the number from which an output's sum starts: a margin of the call, or the base score.
double Machine::base(std::uint32_t row, std::size_t output) const {
  return pass_->options->base_margin.data != nullptr ? margin(row, output) : pass_->base[output];
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
    if (pass_->options->base_margin.data != nullptr)
      fill_margins<Element>(args.acc_out, rows);
    else
      fill<Element>(args.acc_out, rows, pass_->base);
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
  with_element(args.acc_out, [&]<class Element>() {
    for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
      Element* sums = accumulator_row<Element>(args.acc_out, row);
      for (std::size_t k = 0; k < outputs_; ++k) forestvm::add_base(sums[k], base(row, k), loaded_->scale);
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

/// Copies the values that functions of some rows' leaves read.
void Machine::read_leaf_values(const Range& rows) const {
  const std::span<const std::uint32_t> features = loaded_->functions.features();
  if (features.empty()) return;
  pass_->source->copy_features(pass_->first_row + rows.begin, rows.size(), features,
                               pass_->leaf_values + std::size_t{rows.begin} * features.size());
}

/// Returns what the function with this number gives for a row.
double Machine::leaf_output(std::uint32_t row, double leaf) const {
  const double* const values = pass_->leaf_values + std::size_t{row} * loaded_->functions.features().size();
  return loaded_->leaf_blocks.output(loaded_->functions, leaf, values);
}

/// Adds the leaves of some trees, or what their numbers stand for, to the sums of some rows, tree after tree.
template <class Score>
void Machine::add_leaves(std::uint32_t to, std::uint32_t from, const Range& rows, const Range& trees) const {
  const std::uint32_t* const outputs = loaded_->tree_outputs.data();
  if (loaded_->vectors.count == 0 && loaded_->functions.empty()) {
    // The sums of several rows do not wait for each other.
    const std::size_t width = loaded_->accumulators[from].width;
    const Score* const leaves = accumulator_row<Score>(from, rows.begin);
    Score* const sums = accumulator_row<Score>(to, rows.begin);
    for (std::uint32_t t = trees.begin; t < trees.end; ++t)
      for (std::size_t i = 0; i < rows.size(); ++i) sums[i * outputs_ + outputs[t]] += leaves[i * width + t];
    return;
  }
  for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
    const Score* const leaves = accumulator_row<Score>(from, row);
    Score* const sums = accumulator_row<Score>(to, row);
    if (loaded_->vectors.count != 0) {
      add_vectors(loaded_->vectors, leaves + trees.begin, trees.size(), sums);
      continue;
    }
    for (std::uint32_t t = trees.begin; t < trees.end; ++t)
      sums[outputs[t]] += static_cast<Score>(leaf_output(row, static_cast<double>(leaves[t])));
  }
}

/// Adds the leaves of a row, round after round, until its scores are decided: see EarlyStop.
template <class Score>
void Machine::add_until_decided(std::uint32_t to, std::uint32_t from, const Range& row) const {
  const auto outputs = static_cast<std::uint32_t>(outputs_);
  const EarlyStop& stop = *pass_->options->early_stop;
  const Range& all = pass_->trees;
  const auto step = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{stop.every} * outputs, std::max(all.size(), 1u)));
  for (std::uint32_t i = 0; i < iterations(all.size(), step); ++i) {
    add_leaves<Score>(to, from, row, chunk(all, step, i));
    const Score* const sums = accumulator_row<Score>(to, row.begin);
    if (is_decided(loaded_->meta.early_stop, sums, outputs, stop.margin)) return;
  }
}

namespace {

/// The number of rows whose leaves are added together.
constexpr std::uint32_t kRowsAddedAtOnce = 8;

/// Calls visit(part) for parts of `rows` of at most `step` rows.
template <class Visit>
void for_parts(const Range& rows, std::uint32_t step, const Visit& visit) {
  for (std::uint32_t i = 0; i < iterations(rows.size(), step); ++i) visit(chunk(rows, step, i));
}

}  // namespace

void Machine::sum_trees(const Inst& inst) {
  const auto args = operands<Op::SumTrees>(inst);
  const Range& rows = ranges[args.rows];
  read_leaf_values(rows);
  with_scores(args.acc_out, [&]<class Score>() {
    if (pass_->options->early_stop)
      for_parts(rows, 1, [&](const Range& row) { add_until_decided<Score>(args.acc_out, args.acc_in, row); });
    else
      for_parts(rows, kRowsAddedAtOnce,
                [&](const Range& some) { add_leaves<Score>(args.acc_out, args.acc_in, some, pass_->trees); });
  });
}

/// Writes the outputs of some rows' leaves.
template <class Value>
void Machine::store_leaves(std::uint32_t from, const Range& rows, Value* values) const {
  const auto store_each = [&]<class Score>() {
    for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
      const Score* const leaves = accumulator_row<Score>(from, row);
      Value* to = values + row * pass_->width;
      for (std::uint32_t t = pass_->trees.begin; t < pass_->trees.end; ++t) {
        if (loaded_->vectors.count != 0) {
          const Score* const vector = leaf_vector(loaded_->vectors, leaves[t]);
          for (std::size_t k = 0; k < outputs_; ++k) *to++ = static_cast<Value>(vector[k]);
        } else if (!loaded_->functions.empty()) {
          *to++ = static_cast<Value>(static_cast<Score>(leaf_output(row, static_cast<double>(leaves[t]))));
        } else {
          *to++ = static_cast<Value>(leaves[t]);
        }
      }
    }
  };
  if (loaded_->accumulators[from].kind == AccumulatorKind::PerTree64)
    store_each.template operator()<double>();
  else
    store_each.template operator()<float>();
}

void Machine::store_trees(const Inst& inst) {
  const auto args = operands<Op::StoreTrees>(inst);
  const Range& rows = ranges[args.rows];
  read_leaf_values(rows);
  if (pass_->wide_values != nullptr)
    store_leaves(args.acc_in, rows, pass_->wide_values);
  else
    store_leaves(args.acc_in, rows, pass_->values);
}

/// Adds the leaves of some rows, and writes their sums after each stage.
template <class Value>
void Machine::add_stages(const OperandsOf<Op::StoreStages>& args, const Range& rows, Value* values) const {
  const auto begins = loaded_->program.round_begins();
  const Rounds rounds = rounds_of(loaded_->program, *pass_->options);
  const std::uint32_t every = pass_->options->every;
  const auto add_stage = [&]<class Element>(std::uint32_t stage, const Range& some) {
    using Score = decltype(Element::value);
    const std::uint32_t first = rounds.begin + stage * every;
    const std::uint32_t end = every < rounds.end - first ? first + every : rounds.end;
    add_leaves<Score>(args.acc_out, args.acc_in, some, {begins[first], begins[end], 0});
    for (std::uint32_t row = some.begin; row < some.end; ++row) {
      const Element* const sums = accumulator_row<Element>(args.acc_out, row);
      Value* const to = values + row * pass_->width + stage * outputs_;
      for (std::size_t k = 0; k < outputs_; ++k) {
        Element sum = sums[k];
        if (args.base_last != 0) {
          if (loaded_->meta.scale != 1) sum.value *= static_cast<Score>(loaded_->meta.scale);
          forestvm::add_base(sum, base(row, k), loaded_->scale);
        }
        to[k] = static_cast<Value>(sum.value);
      }
    }
  };
  const std::size_t stages = pass_->width / outputs_;
  for_parts(rows, kRowsAddedAtOnce, [&](const Range& some) {
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
      if (loaded_->accumulators[args.acc_out].kind == AccumulatorKind::F64)
        add_stage.template operator()<F64Sum>(stage, some);
      else
        add_stage.template operator()<F32Sum>(stage, some);
    }
  });
}

void Machine::store_stages(const Inst& inst) {
  const auto args = operands<Op::StoreStages>(inst);
  const Range& rows = ranges[args.rows];
  read_leaf_values(rows);
  if (pass_->wide_values != nullptr)
    add_stages(args, rows, pass_->wide_values);
  else
    add_stages(args, rows, pass_->values);
}

}  // namespace forestvm::host
