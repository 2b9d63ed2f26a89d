// Adds what leaves attribute to features, for leaves that have a number for every feature: see leaf_attributions.hpp.
// Each CPU target compiles it. Sums are added in the order of the trees, so all targets give the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/core/leaf_lists.hpp>
#include <forestvm/core/platform.hpp>

#include "vm/host/lines.hpp"

namespace forestvm::host {

/// Some trees of some rows.
struct AttributeTask {
  std::span<const NumberedLeaves> trees;  ///< At most kAttributedTrees.
  const std::uint32_t* outputs;           ///< The output of each of the trees.
  const std::uint32_t* first_lines;       ///< For each leaf of the model the index of its first line.
  const Line* lines;                      ///< The numbers; a leaf that no row reaches has line 0.
  std::size_t leaf_lines;                 ///< Lines of a leaf.
  const std::int32_t* leaves;  ///< Numbers of the leaves that the first row reaches in these trees.
  std::size_t row_leaves;      ///< Numbers from one row to the next.
  std::uint32_t rows;
  void* sums;            ///< Sums of the first row, of type double or float.
  std::size_t row_sums;  ///< Sums from one row to the next.
  std::size_t terms;     ///< Sums of an output.
  bool wide;             ///< Whether numbers and sums are of type double.
};

using AttributeFunction = void (*)(const AttributeTask&);

/// The number of trees that are taken for many rows before the next ones, so that their terms stay in the caches. The
/// numbers of a row's leaves in them fill a line of a cache.
inline constexpr std::size_t kAttributedTrees = 16;

template <class Score, unsigned Bytes>
struct ScoreVector {
  typedef Score Type __attribute__((vector_size(Bytes), aligned(alignof(Score)), may_alias));
};

/// Adds the numbers of trees to the sums of `Rows` rows, which are taken together because an addition takes several
/// cycles. The sums of a line stay in registers.
template <class Score, unsigned Bytes, unsigned Rows>
FVM_INLINE void add_lines(const Line* const* leaves, std::size_t count, std::size_t lines, Score* sums,
                          std::size_t row_sums) {
  using Vector = typename ScoreVector<Score, Bytes>::Type;
  constexpr unsigned kParts = sizeof(Line) / Bytes;
  for (std::size_t line = 0; line < lines; ++line, sums += sizeof(Line) / sizeof(Score)) {
    Vector kept[Rows][kParts];
#pragma GCC unroll 16
    for (unsigned i = 0; i < Rows * kParts; ++i)
      kept[i / kParts][i % kParts] =
          reinterpret_cast<const Vector*>(sums + i / kParts * row_sums)[i % kParts];
    for (std::size_t t = 0; t < count; ++t) {
#pragma GCC unroll 16
      for (unsigned i = 0; i < Rows * kParts; ++i)
        kept[i / kParts][i % kParts] +=
            reinterpret_cast<const Vector*>(leaves[i / kParts * kAttributedTrees + t] + line)[i % kParts];
    }
#pragma GCC unroll 16
    for (unsigned i = 0; i < Rows * kParts; ++i)
      reinterpret_cast<Vector*>(sums + i / kParts * row_sums)[i % kParts] = kept[i / kParts][i % kParts];
  }
}

/// Finds the numbers of the leaves that a row reaches, and lets the processor fetch them.
FVM_INLINE void find_lines(const AttributeTask& task, std::uint32_t row, const Line** lines) {
  const std::int32_t* const leaves = task.leaves + row * task.row_leaves;
  for (std::size_t t = 0; t < task.trees.size(); ++t) {
    const auto number = static_cast<std::uint32_t>(leaves[t]);
    // A leaf that the tree does not have is in a damaged program only.
    const bool known = number < task.trees[t].leaf_count;
    lines[t] = task.lines + (known ? task.first_lines[task.trees[t].first_leaf + number] : 0);
    __builtin_prefetch(lines[t]);
  }
}

template <class Score, unsigned Bytes, unsigned Rows>
FVM_INLINE void add_row_numbers(const AttributeTask& task, const Line* const* lines, std::uint32_t row) {
  Score* const sums = static_cast<Score*>(task.sums) + row * task.row_sums;
  for (std::size_t t = 0; t < task.trees.size();) {
    std::size_t end = t + 1;
    while (end < task.trees.size() && task.outputs[end] == task.outputs[t]) ++end;
    add_lines<Score, Bytes, Rows>(lines + t, end - t, task.leaf_lines, sums + task.outputs[t] * task.terms,
                                  task.row_sums);
    t = end;
  }
}

template <class Score, unsigned Bytes>
FVM_INLINE void add_numbers(const AttributeTask& task) {
  constexpr std::uint32_t kRows = Bytes == 16 ? 2 : 4;
  constexpr std::uint32_t kAhead = 2 * kRows;  // rows by which the numbers of leaves are fetched ahead
  const Line* lines[2][kRows * kAttributedTrees];
  const auto find = [&](std::uint32_t begin) __attribute__((always_inline)) {
    for (std::uint32_t row = begin; row < std::min(begin + kRows, task.rows); ++row) {
      if (row + kAhead < task.rows) __builtin_prefetch(task.leaves + (row + kAhead) * task.row_leaves);
      find_lines(task, row, lines[begin / kRows % 2] + (row - begin) * kAttributedTrees);
    }
  };
  find(0);
  for (std::uint32_t row = 0; row < task.rows; row += kRows) {
    find(row + kRows);  // the lines of the next rows come into the cache meanwhile
    const Line* const* const mine = lines[row / kRows % 2];
    if (task.rows - row >= kRows) {
      add_row_numbers<Score, Bytes, kRows>(task, mine, row);
    } else {
      for (std::uint32_t i = 0; i < task.rows - row; ++i)
        add_row_numbers<Score, Bytes, 1>(task, mine + i * kAttributedTrees, row + i);
    }
  }
}

template <class Target>
void attribute_numbers(const AttributeTask& task) {
  if (task.wide)
    add_numbers<double, Target::Codes::kLanes>(task);
  else
    add_numbers<float, Target::Codes::kLanes>(task);
}

}  // namespace forestvm::host
