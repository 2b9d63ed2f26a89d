// Encodes rows of float64 values as rank codes, where they lie, in a program that compares in float64. In: the rows of a
// range and the program's features and columns. Out: the codes of those rows and no others. This is one template; each
// CPU target has a search for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vm/host/encode_categories.hpp"
#include "vm/host/encode_rows.hpp"

namespace forestvm::host {

struct DoublesTask {
  std::span<const FeatureTile> tiles;
  std::span<const FeatureCategories> categories;
  const std::uint32_t* words;  ///< The words of `categories`.
  std::size_t columns;         ///< Number of columns of codes.
  Range row_range;
  const double* rows;  ///< Need no alignment.
  std::size_t row_stride;
  const EncoderRules* rules;
  std::uint8_t* codes;
};

using EncodeDoublesFunction = void (*)(const DoublesTask&);

/// Encodes up to kCodeRows float32 values of a feature, which may be RoundedUp. This is a function of its own so that the
/// code of a search that looks for ties is there once.
template <class Target>
__attribute__((noinline)) void encode_rounded(const FeatureSearch& search, const float* values,
                                              unsigned count, std::uint8_t* codes, const RoundedUp& source) {
  Target::Search::encode_transposed(search, values, count, codes, source);
}

/// Encodes a feature whose values are read one by one. `rows` points to the first row's value of feature 0.
template <class Target>
void encode_apart(const DoublesTask& task, const FeatureSearch& search, const double* rows, unsigned count,
                  std::uint8_t* codes) {
  alignas(64) float values[kCodeRows];
  const EncoderRules& rules = *task.rules;
  RoundedUp source{rows + search.feature, task.row_stride, &rules};
  if (rules.special[search.feature]) {
    rules.read_doubles(rules.rules, search.feature, source.values, source.stride, count, values);
    source.values = nullptr;
  } else {
    double run[kCodeRows];
    for (unsigned r = 0; r < count; ++r)
      __builtin_memcpy(run + r, reinterpret_cast<const char*>(source.values + r * source.stride),
                       sizeof run[r]);
    Target::Search::round_up(run, count, values);
  }
  encode_rounded<Target>(search, values, count, codes, source);
}

/// Encodes up to kCodeRows rows of a tile, which are rounded up and transposed first.
template <class Target>
void encode_tile(const DoublesTask& task, const FeatureTile& tile, const double* rows, unsigned count,
                 std::uint8_t* codes) {
  using Search = typename Target::Search;
  alignas(64) float rounded[kCodeRows * kTileValues], transposed[kTileValues * kCodeRows];
  for (unsigned r = 0; r < count; ++r)
    Search::round_up(rows + r * task.row_stride + tile.first_value, tile.value_count,
                     rounded + std::size_t{r} * kTileValues);
  bool few = true;
  if constexpr (requires { Search::kFewRows; }) {
    few = count <= Search::kFewRows;
    if (!few) Search::transpose(rounded, kTileValues, count, tile.value_count, transposed);
  }
  for (const FeatureSearch& search : tile.features) {
    const std::size_t at = search.feature - tile.first_value;
    const RoundedUp source{rows + search.feature, task.row_stride, task.rules};
    if (task.rules->special[search.feature])
      encode_apart<Target>(task, search, rows, count, codes);
    else if (few)
      Search::encode_few(search, rounded + at, kTileValues, count, codes, source);
    else
      encode_rounded<Target>(search, transposed + at * kCodeRows, count, codes, source);
  }
}

template <class Target>
void encode_doubles(const DoublesTask& task) {
  const Range& range = task.row_range;
  for (std::uint32_t row = range.begin; row < range.end;) {
    const std::uint32_t in_block = std::min(kCodeRows - row % kCodeRows, range.end - row);
    std::uint8_t* const codes = task.codes + code_offset(row, task.columns);
    const double* const rows = task.rows + row * task.row_stride;
    for (std::size_t i = 0; i < task.tiles.size(); ++i) {
      const FeatureTile& tile = task.tiles[i];
      if (task.row_stride >= kWideRow && i + 1 < task.tiles.size())
        prefetch_values(rows + task.tiles[i + 1].first_value, task.row_stride, in_block);
      if (tile.value_count != 0)
        encode_tile<Target>(task, tile, rows, in_block, codes);
      else
        for (const FeatureSearch& search : tile.features)
          encode_apart<Target>(task, search, rows, in_block, codes);
    }
    for (const FeatureCategories& feature : task.categories) {
      float values[kCodeRows];
      task.rules->read_doubles(task.rules->rules, feature.feature, rows + feature.feature, task.row_stride,
                               in_block, values);
      encode_categories<Target>(feature, task.words, values, 1, in_block, codes);
    }
    row += in_block;
  }
}

}  // namespace forestvm::host
