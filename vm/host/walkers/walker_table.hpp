// All walkers of one layout on one CPU target, as a table from what a WalkerDesc asks for to a function. A
// layout with better walkers than walk.hpp's specialises kWalkers in walkers/of/<Layout>.hpp, which only its
// own files read.
#pragma once

#include <algorithm>
#include <bit>
#include <utility>

#include "vm/host/walkers/walk.hpp"

namespace forestvm::host {

/// Interleavings are counted by their logarithms: 1 … 128 trees by 1 … 128 rows, at most 128 walks.
inline constexpr unsigned kInterleaveSteps = std::bit_width(kMaxInterleave);
/// Endings: until a leaf, any fixed number of hops, then 1 … kMaxFixedHops compiled out.
inline constexpr unsigned kEndings = 2 + kMaxFixedHops;
/// More walks than this share the code for any number of hops: compiling the hops out gains nothing then.
inline constexpr unsigned kMostWalksWithFixedHops = 8;
/// Scalar walkers take no more walks in lockstep than this, whatever is asked for: more would not fit the
/// registers. As a logarithm.
inline constexpr unsigned kMostScalarSteps = 4;

struct WalkerTable {
  WalkFunction functions[kInterleaveSteps][kInterleaveSteps][kEndings] = {};

  /// One walker, whatever is asked for.
  static constexpr WalkerTable of(WalkFunction function) {
    WalkerTable table;
    for (auto& trees : table.functions)
      for (auto& rows : trees)
        for (WalkFunction& ending : rows) ending = function;
    return table;
  }

  /// The walker for a verified description.
  WalkFunction find(const WalkerDesc& desc) const {
    const auto& endings =
        functions[std::countr_zero(desc.interleaved_trees)][std::countr_zero(desc.interleaved_rows)];
    if (desc.end == WalkEnd::UntilLeaf) return endings[0];
    const bool fixed = desc.hops >= 1 && desc.hops <= kMaxFixedHops && endings[1 + desc.hops] != nullptr;
    return endings[fixed ? 1u + desc.hops : 1u];
  }
};

namespace walker_rows {

constexpr int ending_at(int index) { return index == 0 ? kUntilLeaf : index == 1 ? kExactHops : index - 1; }

template <class Target, class View, unsigned LogTrees, unsigned LogRows, unsigned... Endings>
constexpr void fill(WalkerTable& table, std::integer_sequence<unsigned, Endings...>) {
  ((table.functions[LogTrees][LogRows][Endings] =
        &walk<Target, View, 1u << LogTrees, 1u << LogRows, ending_at(Endings)>),
   ...);
}

template <class Target, class View, unsigned LogTrees, unsigned LogRows>
constexpr void fill(WalkerTable& table) {
  if constexpr (LogTrees + LogRows >= kInterleaveSteps) return;
  auto& endings = table.functions[LogTrees][LogRows];
  constexpr unsigned trees = std::min(LogTrees, kMostScalarSteps),
                     rows = std::min(LogRows, kMostScalarSteps - trees);
  if constexpr (trees != LogTrees || rows != LogRows) {
    for (unsigned ending = 0; ending < kEndings; ++ending)
      endings[ending] = table.functions[trees][rows][ending];
  } else {
    constexpr bool fixed = View::kTileWidth == 1 && (1u << (trees + rows)) <= kMostWalksWithFixedHops;
    fill<Target, View, trees, rows>(table, std::make_integer_sequence < unsigned, fixed ? kEndings : 2 > {});
  }
}

template <class Target, class View, unsigned... Pairs>
constexpr WalkerTable make(std::integer_sequence<unsigned, Pairs...>) {
  WalkerTable table;
  (fill<Target, View, Pairs / kInterleaveSteps, Pairs % kInterleaveSteps>(table), ...);
  return table;
}

}  // namespace walker_rows

template <class Target, class View>
inline constexpr WalkerTable kWalkers = walker_rows::make<Target, View>(
    std::make_integer_sequence<unsigned, kInterleaveSteps * kInterleaveSteps>{});

}  // namespace forestvm::host
