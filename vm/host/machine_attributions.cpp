// The instruction `attribute`: the leaves that a row reaches -> approximate contributions of features to its scores.
#include <algorithm>
#include <cstring>
#include <type_traits>

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

}  // namespace

/// Adds what the leaves of some rows attribute to features, in the order of the trees, and writes the sums. Some trees
/// are taken for many rows before the next ones, so that their terms stay in the caches.
template <class Score>
void Machine::attribute_rows(const Range& rows) const {
  constexpr std::size_t kTrees = 16;  // the numbers of a row's leaves in as many trees fill a line of a cache
  constexpr std::uint32_t kAhead = 8;  // rows whose numbers the processor fetches meanwhile
  const auto trees = loaded_->program.attributed_trees();
  const std::uint32_t* const leaves = loaded_->attributions.leaves.data();
  const LeafTerm<Score>* const terms = loaded_->attributions.terms<Score>();
  const ScratchSlots::Slot slot(*pass_->slots);
  auto* const sums = reinterpret_cast<Score*>(slot.memory());
  const std::size_t width = attributed_sums(loaded_->meta), most = attributed_rows(width, sizeof(Score));
  for (std::uint32_t row = rows.begin; row < rows.end;) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(most, rows.end - row));
    std::memset(sums, 0, count * width * sizeof *sums);
    const std::int32_t* const numbers = pass_->leaves + row * trees.size();
    for (std::size_t begin = 0; begin < trees.size(); begin += kTrees) {
      const std::size_t end = std::min(begin + kTrees, trees.size());
      for (std::uint32_t i = 0; i < count; ++i) {
        if (i + kAhead < count) __builtin_prefetch(numbers + (i + kAhead) * trees.size() + begin);
        const std::uint32_t* lists[kTrees];
        std::size_t listed = 0;
        for (std::size_t t = begin; t < end; ++t) {
          const auto number = static_cast<std::uint32_t>(numbers[i * trees.size() + t]);
          if (number >= trees[t].leaf_count) continue;  // in a damaged program only
          const std::uint32_t* const leaf = leaves + trees[t].first_leaf + number;
          __builtin_prefetch(terms + *leaf);
          lists[listed++] = leaf;
        }
        Score* const to = sums + i * width;
        for (std::size_t l = 0; l < listed; ++l)
          for (std::uint32_t term = lists[l][0], last = lists[l][1]; term != last; ++term)
            to[terms[term].sum] += terms[term].value;
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
    attribute_rows<double>(rows);
  else
    attribute_rows<float>(rows);
}

}  // namespace forestvm::host
