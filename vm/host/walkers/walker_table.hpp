// All walkers of one layout on one CPU target, as a table from what a WalkerDesc asks for to a function. A
// layout with better walkers than walk.hpp's specialises kWalkers and kOwnWalkers in walkers/of/<Layout>.hpp,
// which only its own files read.
#pragma once

#include <algorithm>
#include <bit>
#include <utility>

#include "vm/host/walkers/walk.hpp"

namespace forestvm::host {

/// Interleavings are counted by their logarithms: 1 … 128 trees by 1 … 128 rows, at most 128 walks.
inline constexpr unsigned kInterleaveSteps = std::bit_width(kMaxInterleave);

struct WalkerTable {
  WalkFunction functions[kInterleaveSteps][kInterleaveSteps] = {};

  /// Returns a table with one walker for all descriptions.
  static constexpr WalkerTable of(WalkFunction function) {
    WalkerTable table;
    for (auto& trees : table.functions)
      for (WalkFunction& rows : trees) rows = function;
    return table;
  }

  /// Returns the walker for a verified description; null if the table has none.
  WalkFunction find(const WalkerDesc& desc) const {
    return functions[std::countr_zero(desc.interleaved_trees)][std::countr_zero(desc.interleaved_rows)];
  }
};

namespace walker_rows {

template <class Target, class View, unsigned LogTrees, unsigned LogRows>
constexpr WalkFunction scalar() {
  constexpr unsigned most = scalar_steps<View>(LogTrees, LogRows);
  constexpr unsigned trees = std::min(LogTrees, most), rows = std::min(LogRows, most - trees);
  return &walk<Target, View, trees, rows>;
}

template <class Target, class View, unsigned... Pairs>
constexpr WalkerTable scalar(std::integer_sequence<unsigned, Pairs...>) {
  WalkerTable table;
  ((table.functions[Pairs / kInterleaveSteps][Pairs % kInterleaveSteps] =
        scalar<Target, View, Pairs / kInterleaveSteps, Pairs % kInterleaveSteps>()),
   ...);
  return table;
}

template <class Target, class View>
constexpr WalkerTable scalar() {
  return scalar<Target, View>(std::make_integer_sequence<unsigned, kInterleaveSteps * kInterleaveSteps>{});
}

}  // namespace walker_rows

/// The walkers of the first of the CPU targets that are built: one for every description.
template <class Target, class View>
inline constexpr WalkerTable kWalkers = walker_rows::scalar<Target, View>();

/// The walkers of a later target: those that its instructions make faster than the first target's.
template <class Target, class View>
inline constexpr WalkerTable kOwnWalkers;

}  // namespace forestvm::host
