// The host machine's instructions on sums: how they begin, are put together, and become scores.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include <forestvm/internal/calls.hpp>

#include "vm/host/machine.hpp"
#include "vm/host/reduce.hpp"

namespace forestvm::host {

namespace {

/// Copies the first `size` bytes over all `total` bytes, twice as many each time. Converting the values of each row
/// would take most of the time of fill().
[[gnu::noinline]] void repeat(std::byte* bytes, std::size_t size, std::size_t total) {
  for (std::size_t done = size; done < total; done *= 2)
    std::memcpy(bytes + done, bytes, std::min(done, total - done));
}

}  // namespace

/// Sets every row of an accumulator to `values`, one for each output, or to zero if `values` is null.
template <class Element>
void Machine::fill(std::uint32_t accumulator, const Range& rows, const double* values) const {
  Element* const begin = accumulator_row<Element>(accumulator, rows.begin);
  if (rows.size() == 0) return;
  const std::size_t width = loaded_->memory[accumulator].width;
  for (std::size_t k = 0; k < width; ++k)
    begin[k] = values == nullptr ? Element{} : Element::of(values[k], loaded_->scale);
  const std::size_t size = width * sizeof(Element);
  repeat(reinterpret_cast<std::byte*>(begin), size, rows.size() * size);
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

/// Returns whether sums of an early stop go on from those of the chunk before, which it gives to some rows then.
bool Machine::resume(std::uint32_t accumulator, const Range& rows) const {
  if (pass_->undecided == nullptr || !pass_->undecided->begun ||
      loaded_->accumulators[accumulator].kind != AccumulatorKind::F64)
    return false;
  std::copy_n(pass_->undecided->scores + rows.begin * outputs_, rows.size() * outputs_,
              accumulator_row<double>(accumulator, rows.begin));
  return true;
}

/// Sets all stages of some rows to zero before walks write them. The verifier proves that a call sets the sums of every
/// row, but not that it walks every tree: no answer may depend on what the caller's memory held.
void Machine::clear_stages(const Range& rows) const {
  if (!pass_->walks_stages) return;
  const std::size_t first = rows.begin * pass_->width, count = rows.size() * pass_->width;
  if (pass_->wide_values != nullptr)
    std::fill_n(pass_->wide_values + first, count, 0);
  else
    std::fill_n(pass_->values + first, count, 0.0f);
}

/// Writes the sums from which rows start without margins, as an init instruction sets them. Returns their bytes, or 0
/// if there is no room for them.
std::uint32_t Machine::first_sums(const Inst& init, std::span<std::byte> to) const {
  const auto args = operands<Op::Init>(init);
  std::size_t bytes = 0;
  with_element(args.acc_out, [&]<class Element>() {
    const std::size_t width = loaded_->memory[args.acc_out].width, count = ranges[args.rows].size() * width;
    if (count > to.size() / sizeof(Element)) return;
    for (std::size_t i = 0; i < count; ++i) {
      const Element sum = Element::of(pass_->base[i % width], loaded_->scale);
      std::memcpy(to.data() + i * sizeof sum, &sum, sizeof sum);
    }
    bytes = count * sizeof(Element);
  });
  return static_cast<std::uint32_t>(bytes);
}

void Machine::init(const Inst& inst) {
  if (ready_ != nullptr && ready_->first_bytes != 0) {
    std::byte* const sums = ready_->adds_to_results ? pass_->accumulators[kResult] : ready_->task.out;
    std::memcpy(sums, ready_->first, ready_->first_bytes);
    return;
  }
  const auto args = operands<Op::Init>(inst);
  const Range& rows = ranges[args.rows];
  clear_stages(rows);
  if (resume(args.acc_out, rows)) return;
  with_element(args.acc_out, [&]<class Element>() {
    // Programs that count sums exactly refuse margins.
    if constexpr (std::is_same_v<Element, F32Sum> || std::is_same_v<Element, F64Sum>)
      if (pass_->options->base_margin.data != nullptr) return fill_margins<Element>(args.acc_out, rows);
    fill<Element>(args.acc_out, rows, pass_->base);
  });
}

void Machine::zero(const Inst& inst) {
  const auto args = operands<Op::Zero>(inst);
  const Range& rows = ranges[args.rows];
  const AccumulatorKind kind = loaded_->accumulators[args.acc_out].kind;
  clear_stages(rows);
  if (!is_per_tree(kind)) {
    if (resume(args.acc_out, rows)) return;
    return with_element(args.acc_out, [&]<class Element>() { fill<Element>(args.acc_out, rows, nullptr); });
  }
  const auto clear = [&]<class Score>() __attribute__((cold)) {
    Score* const leaves = leaves_of<Score>(args.acc_out);
    for (std::uint32_t row = rows.begin; row < rows.end; ++row)
      for (std::uint32_t t = pass_->trees.begin; t < pass_->trees.end; ++t)
        leaves[leaf_offsets().at(row, t)] = 0;
  };
  kind == AccumulatorKind::PerTree64 ? clear.operator()<double>() : clear.operator()<float>();
}

void Machine::add_base(const Inst& inst) {
  const auto args = operands<Op::AddBase>(inst);
  const Range& rows = ranges[args.rows];
  if (adds_chunk()) return;      // once the chunks have ended, the base is added
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
  const AccumulatorDesc& desc = loaded_->accumulators[args.acc_out];
  const std::uint32_t iteration = ranges[args.range_in].iteration;
  copies_[args.acc_out] = copies_[desc.parent] * desc.iterations + iteration;
  if (desc.stored_in != args.acc_out) return;  // its memory is another accumulator's, and a reduction sets it
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
    const std::size_t size = rows.size() * loaded_->memory[to].width;
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

/// Adds the leaves of `count` trees to the sums of some rows. The sums of a line stay in four registers meanwhile: the
/// compiler would keep an array of vectors in memory.
template <class Score>
void add_to_sums(const Score* leaves, std::size_t stride, std::uint32_t count, std::uint32_t rows,
                 Score* sums) {
  typedef Score Vector __attribute__((vector_size(16), aligned(alignof(Score)), may_alias));
  constexpr std::uint32_t kInLine = 4 * sizeof(Vector) / sizeof(Score);
  std::uint32_t i = 0;
  for (; i + kInLine <= rows; i += kInLine) {
    auto* const kept = reinterpret_cast<Vector*>(sums + i);
    Vector a = kept[0], b = kept[1], c = kept[2], d = kept[3];
    const Score* from = leaves + i;
    for (std::uint32_t t = 0; t < count; ++t, from += stride) {
      const auto* const added = reinterpret_cast<const Vector*>(from);
      a += added[0];
      b += added[1];
      c += added[2];
      d += added[3];
    }
    kept[0] = a;
    kept[1] = b;
    kept[2] = c;
    kept[3] = d;
  }
  for (; i < rows; ++i)
    for (std::uint32_t t = 0; t < count; ++t) sums[i] += leaves[t * stride + i];
}

/// Adds the leaves of some rows, tree after tree, to sums that lie output after output.
template <class Score>
void add_to_outputs(const Score* leaves, std::size_t stride, const Range& trees, const std::uint32_t* outputs,
                    std::uint32_t rows, Score* sums) {
  for (std::uint32_t t = trees.begin, end; t < trees.end; t = end) {
    for (end = t + 1; end < trees.end && outputs[end] == outputs[t];) ++end;
    add_to_sums(leaves + t * stride, stride, end - t, rows, sums + std::size_t{outputs[t]} * rows);
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

/// Adds the leaves of some trees, or what their numbers stand for, to the sums of some rows, tree after tree. The rows
/// lie in one block of rows, at most rows_together(outputs_, kCodeRows) of them.
template <class Score>
void Machine::add_leaves(std::uint32_t to, std::uint32_t from, const Range& rows, const Range& trees) const {
  const std::uint32_t* const outputs = loaded_->tree_outputs.data();
  const LeafOffsets offsets = leaf_offsets();
  const Score* const leaves = leaves_of<Score>(from) + offsets.at(rows.begin, 0);
  Score* const sums = accumulator_row<Score>(to, rows.begin);
  const std::uint32_t count = rows.size();
  if (loaded_->vectors.count == 0 && loaded_->functions.empty()) {
    if (outputs_ == 1 || count == 1)
      return add_to_outputs(leaves, offsets.stride, trees, outputs, count, sums);
    Score by_output[kMaxSums];
    for (std::size_t k = 0; k < outputs_; ++k)
      for (std::uint32_t i = 0; i < count; ++i) by_output[k * count + i] = sums[i * outputs_ + k];
    add_to_outputs(leaves, offsets.stride, trees, outputs, count, by_output);
    for (std::size_t k = 0; k < outputs_; ++k)
      for (std::uint32_t i = 0; i < count; ++i) sums[i * outputs_ + k] = by_output[k * count + i];
    return;
  }
  if (loaded_->vectors.count != 0)
    return loaded_->target->add_vectors({loaded_->vectors, std::is_same_v<Score, double>,
                                         leaves + trees.begin * std::size_t{offsets.stride}, offsets.stride,
                                         trees.size(), count, sums});
  for (std::uint32_t i = 0; i < count; ++i) {
    Score* const row_sums = sums + i * outputs_;
    for (std::uint32_t t = trees.begin; t < trees.end; ++t) {
      const auto number = static_cast<double>(leaves[std::size_t{t} * offsets.stride + i]);
      row_sums[outputs[t]] += static_cast<Score>(leaf_output(rows.begin + i, number));
    }
  }
}

namespace {

/// The most rows that are taken together until they are decided: with more, trees would be added to more rows whose
/// scores are decided already.
constexpr std::uint32_t kRowsDecidedTogether = 16;

}  // namespace

/// Keeps the sums of a chunk of the trees of rows that are not decided yet: see UndecidedRows.
void Machine::keep_sums(std::uint32_t from, const Range& rows) const {
  if (loaded_->accumulators[from].kind != AccumulatorKind::F64)
    return;  // no program that is compiled has such
  pass_->undecided->keep(rows, accumulator_row<double>(from, rows.begin), outputs_);
}

/// Adds the leaves of the chunk's trees to the sums of some rows, round after round, until all rows are decided: see
/// EarlyStop. A row's sums remain those with which it was decided.
[[gnu::cold]] void Machine::add_until_decided(std::uint32_t to, std::uint32_t from, const Range& rows) const {
  const UndecidedSums& undecided = *pass_->undecided;
  const Range& all = pass_->trees;
  const auto step = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      std::uint64_t{pass_->options->early_stop->every} * outputs_, std::max(all.size(), 1u)));
  const double* const kept = undecided.scores + rows.begin * outputs_;
  for (std::uint32_t c = 0; c < iterations(all.size(), step); ++c) {
    if (undecided.left(rows) == 0) return;
    add_leaves<double>(to, from, rows, chunk(all, step, c));
    keep_sums(to, rows);
    std::copy_n(kept, rows.size() * outputs_, accumulator_row<double>(to, rows.begin));
  }
}

void Machine::sum_trees(const Inst& inst) {
  const auto args = operands<Op::SumTrees>(inst);
  const Range& rows = ranges[args.rows];
  read_leaf_values(rows);
  if (adds_chunk() && loaded_->accumulators[args.acc_out].kind == AccumulatorKind::F64) {
    LeafOffsets::for_parts(rows, rows_together(outputs_, kRowsDecidedTogether),
                           [&](const Range& some) { add_until_decided(args.acc_out, args.acc_in, some); });
    return;
  }
  const Range& all = pass_->trees;
  // The vectors of the leaves of a few trees lie in near caches, from which the rows of all blocks read them.
  const bool in_turns = loaded_->vectors.count != 0 && rows.size() > kCodeRows;
  const std::uint32_t step = in_turns ? kVectorsFound / kCodeRows : std::max(all.size(), 1u);
  for (std::uint32_t c = 0; c < iterations(all.size(), step); ++c) {
    const Range trees = chunk(all, step, c);
    LeafOffsets::for_parts(rows, rows_together(outputs_, kCodeRows), [&](const Range& some) {
      with_scores(args.acc_out,
                  [&]<class Score>() { add_leaves<Score>(args.acc_out, args.acc_in, some, trees); });
    });
  }
}

template void Machine::fill<F32Sum>(std::uint32_t accumulator, const Range& rows, const double* values) const;
template void Machine::fill<F64Sum>(std::uint32_t accumulator, const Range& rows, const double* values) const;
template void Machine::add_leaves<float>(std::uint32_t to, std::uint32_t from, const Range& rows,
                                         const Range& trees) const;
template void Machine::add_leaves<double>(std::uint32_t to, std::uint32_t from, const Range& rows,
                                          const Range& trees) const;

}  // namespace forestvm::host
