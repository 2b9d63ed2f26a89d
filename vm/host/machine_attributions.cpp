// The instruction `attribute`: the leaves that a row reaches -> approximate contributions of features to its scores.
#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

#include "vm/host/leaf_lists.hpp"
#include "vm/host/machine.hpp"

namespace forestvm::host {
namespace {

/// Writes the numbers of the features of a call, or of all, in the type of the output. There are `terms` of them for
/// each output of the model, the last of which is always written.
template <class Score, class Value>
void convert(const Score* numbers, std::size_t count, std::size_t terms,
             std::span<const std::uint32_t> features, Value* to) {
  if (features.empty()) {
    if constexpr (std::is_same_v<Score, Value>)
      std::copy_n(numbers, count, to);
    else
      for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<Value>(numbers[i]);
    return;
  }
  for (const Score* const end = numbers + count; numbers != end; numbers += terms) {
    for (const std::uint32_t feature : features) *to++ = static_cast<Value>(numbers[feature]);
    *to++ = static_cast<Value>(numbers[terms - 1]);
  }
}

/// The number of trees that are taken for many rows before the next ones, so that their terms stay in the caches. The
/// numbers of a row's leaves in them fill a line of a cache.
constexpr std::size_t kTreesAtOnce = 16;

/// Adds to a row's sums the terms of the leaves that it reaches in up to kTreesAtOnce trees. `numbers` has the numbers
/// of these leaves, and `leaves` is LeafAttributions::leaves.
template <class Score>
void add_terms(std::span<const NumberedLeaves> trees, std::span<const std::uint32_t> leaves,
               const std::int32_t* numbers, const LeafTerm<Score>* terms, Score* sums) {
  struct {
    std::uint32_t begin, end;
  } lists[kTreesAtOnce];
  std::size_t count = 0;
  for_leaf_lists(trees, leaves, numbers, [&](std::uint32_t begin, std::uint32_t end) {
    __builtin_prefetch(terms + begin);
    lists[count++] = {begin, end};
  });
  for (std::size_t l = 0; l < count; ++l)
    for (std::uint32_t term = lists[l].begin; term != lists[l].end; ++term)
      sums[terms[term].sum] += terms[term].value;
}

}  // namespace

/// Adds what the leaves of some rows attribute to features, in the order of the trees, and writes the sums.
template <class Score>
void Machine::attribute_rows(const Range& rows, const LeafTerm<Score>* terms) const {
  constexpr std::uint32_t kAhead = 8;  // rows whose numbers the processor fetches meanwhile
  const auto trees = loaded_->program.attributed_trees();
  const ScratchSlots::Slot slot(*pass_->slots);
  auto* const sums = reinterpret_cast<Score*>(slot.memory());
  const std::size_t width = attributed_sums(loaded_->meta), most = attributed_rows(loaded_->meta);
  for (std::uint32_t row = rows.begin; row < rows.end;) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(most, rows.end - row));
    std::memset(sums, 0, count * width * sizeof *sums);
    for (std::size_t begin = 0; begin < trees.size(); begin += kTreesAtOnce) {
      const auto some = trees.subspan(begin, std::min(kTreesAtOnce, trees.size() - begin));
      const std::int32_t* numbers = pass_->leaves + row * trees.size() + begin;
      for (std::uint32_t i = 0; i < count; ++i, numbers += trees.size()) {
        if (i + kAhead < count) __builtin_prefetch(numbers + kAhead * trees.size());
        add_terms(some, loaded_->attributions.leaves, numbers, terms, sums + i * width);
      }
    }
    for (std::uint32_t i = 0; i < count; ++i) write_attributions(row + i, sums + i * width);
    row += count;
  }
}

/// Writes the approximate contributions of a row, to whose sums it adds the expected scores.
template <class Score>
void Machine::write_attributions(std::uint32_t row, Score* sums) const {
  const auto base = loaded_->program.attribution_base();
  const bool has_margins = pass_->options->base_margin.data != nullptr;  // the means of trees follow the base
  const std::size_t terms = std::size_t{loaded_->meta.num_features} + 1;
  for (std::size_t k = 0; k < outputs_; ++k)
    sums[(k + 1) * terms - 1] =
        has_margins ? static_cast<Score>(base[outputs_ + k]) + static_cast<Score>(margin(row, k))
                    : static_cast<Score>(base[k]);
  const auto write = [&](auto* to) {
    convert(sums, outputs_ * terms, terms, pass_->options->features, to + row * pass_->width);
  };
  pass_->wide_values != nullptr ? write(pass_->wide_values) : write(pass_->values);
}

void Machine::attribute(const Inst& inst) {
  const Range& rows = ranges[operands<Op::Attribute>(inst).rows];
  if (loaded_->meta.score_type == ScalarType::Float64)
    attribute_rows(rows, loaded_->attributions.doubles.data());
  else
    attribute_rows(rows, loaded_->attributions.singles.data());
}

}  // namespace forestvm::host
