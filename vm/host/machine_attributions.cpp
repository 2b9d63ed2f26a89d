// The instruction `attribute`: the leaves that a row reaches -> approximate contributions of features to its scores.
#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

#include <forestvm/core/leaf_lists.hpp>

#include "vm/host/attribute_numbers.hpp"
#include "vm/host/large_results.hpp"
#include "vm/host/machine.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm::host {
namespace {

/// Writes the numbers of the features of a call, or of all, in the type of the output, which may be large. There are
/// `terms` of them for each output of the model, the last of which is always written.
template <class Score, class Value>
void convert(const Score* numbers, std::size_t count, std::size_t terms,
             std::span<const std::uint32_t> features, Value* to, bool is_large) {
  if (features.empty()) {
    if constexpr (std::is_same_v<Score, Value>)
      copy_result(numbers, count * sizeof *to, to, is_large);
    else
      for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<Value>(numbers[i]);
    return;
  }
  for (const Score* const end = numbers + count; numbers != end; numbers += terms) {
    for (const std::uint32_t feature : features) *to++ = static_cast<Value>(numbers[feature]);
    *to++ = static_cast<Value>(numbers[terms - 1]);
  }
}

/// Terms that are added in a step of a loop.
constexpr std::size_t kTermsTogether = 4;

/// The terms of the leaves that a row reaches in up to kAttributedTrees trees.
template <class Score>
struct TermLists {
  LeafList lists[kAttributedTrees];

  /// Finds the lists, and lets the processor fetch them. `numbers` has the numbers of the leaves.
  [[gnu::noinline]] void find(std::span<const NumberedLeaves> trees, const LeafAttributions& all,
                              const std::int32_t* numbers) {
    const LeafTerm<Score>* const terms = all.terms<Score>();
    const std::uint32_t* const indices = all.leaves.data();
    for (std::size_t t = 0; t < trees.size(); ++t) {
      const LeafList list = leaf_list(trees[t], indices, numbers[t]);
      __builtin_prefetch(terms + list.begin);
      __builtin_prefetch(terms + list.end - (list.end != list.begin ? 1 : 0));
      lists[t] = list;
    }
  }

  /// Adds the terms of the first `count` lists.
  void add(std::size_t count, const LeafTerm<Score>* terms, Score* sums) const {
    for (std::size_t l = 0; l < count; ++l) {
      const LeafTerm<Score>*term = terms + lists[l].begin, *const end = terms + lists[l].end;
      for (; end - term >= static_cast<std::ptrdiff_t>(kTermsTogether); term += kTermsTogether)
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kTermsTogether; ++i) sums[term[i].sum] += term[i].value;
      for (; term != end; ++term) sums[term->sum] += term->value;
    }
  }
};

/// The rows of a call for which sums are computed together.
struct SummedRows {
  const std::int32_t* leaves;  ///< Numbers of the leaves that the first row reaches, tree after tree.
  std::uint32_t count;
  std::size_t numbers;  ///< Numbers from one row to the next.
  std::size_t width;    ///< Sums of a row.
};

/// How many rows ahead the processor fetches the numbers of leaves.
constexpr std::uint32_t kAhead = 8;

/// Adds to the sums of rows the terms of the leaves that they reach in some trees, at most kAttributedTrees from
/// `begin` on.
template <class Score>
void add_lists(const SummedRows& rows, std::span<const NumberedLeaves> trees, std::size_t begin,
               const LeafAttributions& all, Score* sums) {
  const std::int32_t* const numbers = rows.leaves + begin;
  TermLists<Score> lists[2];
  lists[0].find(trees, all, numbers);
  for (std::uint32_t i = 0; i < rows.count; ++i) {
    if (i + kAhead < rows.count) __builtin_prefetch(numbers + (i + kAhead) * rows.numbers);
    // The lists of the next row come into the cache meanwhile.
    if (i + 1 < rows.count) lists[(i + 1) % 2].find(trees, all, numbers + (i + 1) * rows.numbers);
    lists[i % 2].add(trees.size(), all.terms<Score>(), sums + i * rows.width);
  }
}

}  // namespace

/// Adds what the leaves of some rows attribute to features, in the order of the trees, and writes the sums.
template <class Score>
void Machine::attribute_rows(const Range& rows) const {
  const LeafAttributions& all = loaded_->attributions;
  const auto trees = loaded_->program.attributed_trees();
  const ScratchSlots::Slot slot(*pass_->slots);
  auto* const sums = reinterpret_cast<Score*>(slot.memory());
  const std::size_t terms = std::size_t{loaded_->meta.num_features} + 1;
  const std::size_t width = attributed_sums(loaded_->meta), most = attributed_rows(loaded_->meta);
  const std::size_t numbers = kept_numbers(trees.size());
  const bool is_large = is_large_result(pass_->row_count * pass_->width * sizeof *sums);
  for (std::uint32_t row = rows.begin; row < rows.end;) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(most, rows.end - row));
    const SummedRows some{pass_->leaves + row * numbers, count, numbers, width};
    std::memset(sums, 0, count * width * sizeof *sums);
    for (std::size_t begin = 0; begin < trees.size(); begin += kAttributedTrees) {
      const auto these = trees.subspan(begin, std::min(kAttributedTrees, trees.size() - begin));
      if (all.leaf_lines != 0)
        loaded_->target->attribute({these, all.outputs.data() + begin, all.leaves.data(), all.numbers.data(),
                                    all.leaf_lines, some.leaves + begin, some.numbers, count, sums, width,
                                    terms, std::is_same_v<Score, double>});
      else
        add_lists(some, these, begin, all, sums);
    }
    for (std::uint32_t i = 0; i < count; ++i) write_attributions(row + i, sums + i * width, is_large);
    row += count;
  }
  finish_result(is_large);
}

/// Writes the approximate contributions of a row, to whose sums it adds the expected scores.
template <class Score>
void Machine::write_attributions(std::uint32_t row, Score* sums, bool is_large) const {
  const auto base = loaded_->program.attribution_base();
  const bool has_margins = pass_->options->base_margin.data != nullptr;  // the means of trees follow the base
  const std::size_t terms = std::size_t{loaded_->meta.num_features} + 1;
  for (std::size_t k = 0; k < outputs_; ++k)
    sums[(k + 1) * terms - 1] =
        has_margins ? static_cast<Score>(base[outputs_ + k]) + static_cast<Score>(margin(row, k))
                    : static_cast<Score>(base[k]);
  const auto write = [&](auto* to) {
    convert(sums, outputs_ * terms, terms, pass_->options->features, to + row * pass_->width, is_large);
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
