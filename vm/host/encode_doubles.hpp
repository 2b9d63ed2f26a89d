// Encodes rows of float64 values as rank codes, where they lie, in a program that compares in float64. In: the rows
// of a range and the program's features and columns. Out: the codes of those rows and no others. This is one
// template; each CPU target has a search for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "vm/host/encode_categories.hpp"
#include "vm/host/encode_rows.hpp"
#include "vm/host/picked_values.hpp"

namespace forestvm::host {

struct DoublesTask {
  std::span<const PickStrip> strips;
  std::span<const FeatureCategories> categories;
  const std::uint32_t* words;  ///< The words of `categories`.
  std::size_t columns;         ///< Number of columns of codes.
  std::size_t row_values;      ///< Values of a row that may be read.
  Range row_range;
  const double* rows;  ///< First value of the first row; it needs no alignment.
  std::size_t row_stride;
  const EncoderRules* rules;
  std::uint8_t* codes;
};

using EncodeDoublesFunction = void (*)(const DoublesTask&);

/// Up to kCodeRows rows of a task.
struct DoubleRows {
  const double* values;
  unsigned count;
};

/// Encodes up to kCodeRows float32 values of a feature, which may be RoundedUp. This is a function of its own so
/// that there is one copy of the code that looks for ties.
template <class Target>
__attribute__((noinline)) void encode_rounded(const FeatureSearch& search, const float* values,
                                              unsigned count, std::uint8_t* codes, const RoundedUp& source) {
  Target::Search::encode_transposed(search, values, count, codes, source);
}

/// Encodes a feature whose values need more than rounding.
template <class Target>
void encode_special(const DoublesTask& task, const FeatureSearch& search, const DoubleRows& rows,
                    std::uint8_t* codes) {
  alignas(64) float values[kCodeRows];
  task.rules->read_doubles(task.rules->rules, search.feature, rows.values + search.feature, task.row_stride,
                           rows.count, values);
  encode_rounded<Target>(search, values, rows.count, codes, {nullptr, 1, task.rules});
}

/// Picks the values of a strip's features, kPickedStride apart, and rounds them up to float32.
template <class Search>
FVM_INLINE void pick_values(const DoublesTask& task, const PickStrip& strip, const DoubleRows& rows,
                            float* picked) {
  if constexpr (Search::kPicks) {
    Search::pick(strip, rows.values, task.row_stride, task.row_values, rows.count, picked);
  } else {
    for (unsigned r = 0; r < rows.count; ++r, picked += kPickedStride) {
      const double* const row = rows.values + r * task.row_stride;
      double values[kStripFeatures];
      unsigned count = 0;
      for (const FeatureSearch& search : strip.features)
        __builtin_memcpy(values + count++, reinterpret_cast<const char*>(row + search.feature),
                         sizeof *values);
      Search::round_up(values, count, picked);
    }
  }
}

/// Encodes up to kCodeRows rows of a strip.
template <class Target>
void encode_strip(const DoublesTask& task, const PickStrip& strip, const DoubleRows& rows,
                  std::uint8_t* codes) {
  using Search = typename Target::Search;
  alignas(64) float picked[kCodeRows * kPickedStride], transposed[kTileValues * kCodeRows];
  pick_values<Search>(task, strip, rows, picked);
  bool few = true;
  if constexpr (requires { Search::kFewRows; }) few = rows.count <= Search::kFewRows;
  const std::size_t features = strip.features.size();
  for (std::size_t begin = 0; begin < features; begin += kTileValues) {
    const std::size_t end = std::min<std::size_t>(begin + kTileValues, features);
    if constexpr (requires { Search::kFewRows; })
      if (!few)
        Search::transpose(picked + begin, kPickedStride, rows.count,
                          static_cast<unsigned>(end - begin + 3) / 4 * 4, transposed);
    for (std::size_t i = begin; i < end; ++i) {
      const FeatureSearch& search = strip.features[i];
      const RoundedUp source{rows.values + search.feature, task.row_stride, task.rules};
      if (task.rules->special[search.feature])
        encode_special<Target>(task, search, rows, codes);
      else if (few)
        Search::encode_few(search, picked + i, kPickedStride, rows.count, codes, source);
      else
        encode_rounded<Target>(search, transposed + (i - begin) * kCodeRows, rows.count, codes, source);
    }
  }
}

template <class Target>
void encode_doubles(const DoublesTask& task) {
  const Range& range = task.row_range;
  for (std::uint32_t row = range.begin; row < range.end;) {
    const DoubleRows rows{task.rows + row * task.row_stride,
                          std::min(kCodeRows - row % kCodeRows, range.end - row)};
    std::uint8_t* const codes = task.codes + code_offset(row, task.columns);
    for (const PickStrip& strip : task.strips) encode_strip<Target>(task, strip, rows, codes);
    for (const FeatureCategories& feature : task.categories) {
      float values[kCodeRows];
      task.rules->read_doubles(task.rules->rules, feature.feature, rows.values + feature.feature,
                               task.row_stride, rows.count, values);
      encode_categories<Target>(feature, task.words, values, 1, rows.count, codes);
    }
    row += rows.count;
  }
}

}  // namespace forestvm::host
