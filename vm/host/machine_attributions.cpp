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
/// of these leaves.
template <class Score>
void add_terms(std::span<const NumberedLeaves> trees, const LeafAttributions& all,
               const std::int32_t* numbers, Score* sums) {
  const LeafTerm<Score>* const terms = all.terms<Score>();
  struct {
    std::uint32_t begin, end;
  } lists[kTreesAtOnce];
  std::size_t count = 0;
  for_leaf_lists(trees, all.leaves, numbers, [&](std::uint32_t begin, std::uint32_t end) {
    __builtin_prefetch(terms + begin);
    lists[count++] = {begin, end};
  });
  for (std::size_t l = 0; l < count; ++l)
    for (std::uint32_t term = lists[l].begin; term != lists[l].end; ++term)
      sums[terms[term].sum] += terms[term].value;
}

/// Adds lines of numbers to as many sums. The sums of a line are kept in four registers meanwhile: the compiler would
/// keep an array of vectors in memory.
template <class Score>
void add_lines(const Line* const* leaves, std::size_t count, std::size_t lines, Score* sums) {
  typedef Score Vector __attribute__((vector_size(16), aligned(alignof(Score)), may_alias));
  static_assert(4 * sizeof(Vector) == sizeof(Line));
  for (std::size_t line = 0; line < lines; ++line, sums += sizeof(Line) / sizeof(Score)) {
    auto* const kept = reinterpret_cast<Vector*>(sums);
    Vector a = kept[0], b = kept[1], c = kept[2], d = kept[3];
    for (std::size_t i = 0; i < count; ++i) {
      const auto* const added = reinterpret_cast<const Vector*>(leaves[i] + line);
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
}

/// The rows of a call for which sums are computed together.
struct SummedRows {
  const std::int32_t* leaves;  ///< Numbers of the leaves that the first row reaches, tree after tree.
  std::uint32_t count;
  std::size_t trees;  ///< Trees of the model.
  std::size_t width;  ///< Sums of a row.
};

/// How many rows ahead the processor fetches the numbers of leaves.
constexpr std::uint32_t kAhead = 8;

/// Adds to the sums of rows the terms of the leaves that they reach in some trees, at most kTreesAtOnce from `begin`
/// on.
template <class Score>
void add_lists(const SummedRows& rows, std::span<const NumberedLeaves> trees, std::size_t begin,
               const LeafAttributions& all, Score* sums) {
  const std::int32_t* numbers = rows.leaves + begin;
  for (std::uint32_t i = 0; i < rows.count; ++i, numbers += rows.trees) {
    if (i + kAhead < rows.count) __builtin_prefetch(numbers + kAhead * rows.trees);
    add_terms(trees, all, numbers, sums + i * rows.width);
  }
}

/// Finds the numbers of the leaves that a row reaches in some trees, and lets the processor fetch them.
void find_lines(std::span<const NumberedLeaves> trees, const LeafAttributions& all,
                const std::int32_t* numbers, const Line** lines) {
  for (std::size_t t = 0; t < trees.size(); ++t) {
    const auto number = static_cast<std::uint32_t>(numbers[t]);
    // The first numbers are zeros. A leaf that the tree does not have is in a damaged program only.
    const bool known = number < trees[t].leaf_count;
    lines[t] = all.numbers.data() + (known ? all.leaves[trees[t].first_leaf + number] : 0);
    __builtin_prefetch(lines[t]);
  }
}

/// Adds the numbers of leaves as add_lists adds their terms. An output has `terms` sums.
template <class Score>
void add_numbers(const SummedRows& rows, std::span<const NumberedLeaves> trees, std::size_t begin,
                 const LeafAttributions& all, std::size_t terms, Score* sums) {
  const std::uint32_t* const outputs = all.outputs.data() + begin;
  const Line* lines[2][kTreesAtOnce];
  find_lines(trees, all, rows.leaves + begin, lines[0]);
  for (std::uint32_t i = 0; i < rows.count; ++i, sums += rows.width) {
    if (i + kAhead < rows.count) __builtin_prefetch(rows.leaves + (i + kAhead) * rows.trees + begin);
    // The lines of the next row come into the cache meanwhile.
    if (i + 1 < rows.count)
      find_lines(trees, all, rows.leaves + (i + 1) * rows.trees + begin, lines[(i + 1) % 2]);
    for (std::size_t t = 0; t < trees.size();) {
      std::size_t end = t + 1;
      while (end < trees.size() && outputs[end] == outputs[t]) ++end;
      add_lines(lines[i % 2] + t, end - t, all.leaf_lines, sums + outputs[t] * terms);
      t = end;
    }
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
  for (std::uint32_t row = rows.begin; row < rows.end;) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(most, rows.end - row));
    const SummedRows some{pass_->leaves + row * trees.size(), count, trees.size(), width};
    std::memset(sums, 0, count * width * sizeof *sums);
    for (std::size_t begin = 0; begin < trees.size(); begin += kTreesAtOnce) {
      const auto these = trees.subspan(begin, std::min(kTreesAtOnce, trees.size() - begin));
      if (all.leaf_lines != 0)
        add_numbers(some, these, begin, all, terms, sums);
      else
        add_lists(some, these, begin, all, sums);
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
