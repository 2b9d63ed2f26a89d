// All walkers of one layout on one CPU target, as a table from what a WalkerDesc asks for to a function.
#pragma once

#include <bit>
#include <utility>

#include "vm/host/walkers/walk.hpp"

namespace forestvm::host {

/// Interleavings are counted by their logarithms: 1, 2, 4, 8 trees by 1, 2, 4, 8 rows, at most 8 walks.
inline constexpr unsigned kInterleaveSteps = 4;
/// Endings: until a leaf, any fixed number of hops, then 1 … kMaxFixedHops compiled out.
inline constexpr unsigned kEndings = 2 + kMaxFixedHops;

struct WalkerTable {
  WalkFunction functions[kInterleaveSteps][kInterleaveSteps][kEndings] = {};

  /// The walker for a verified description.
  WalkFunction find(const WalkerDesc& desc) const {
    unsigned ending = 0;
    if (desc.end == WalkEnd::Exact)
      ending = desc.hops >= 1 && desc.hops <= kMaxFixedHops ? 1u + desc.hops : 1u;
    return functions[std::countr_zero(desc.interleaved_trees)][std::countr_zero(desc.interleaved_rows)]
                    [ending];
  }
};

namespace walker_rows {

constexpr int ending_at(int index) { return index == 0 ? kUntilLeaf : index == 1 ? kExactHops : index - 1; }

template <class Target, class View, unsigned LogTrees, unsigned LogRows, unsigned... Endings>
constexpr void fill(WalkerTable& table, std::integer_sequence<unsigned, Endings...>) {
  if constexpr ((1u << (LogTrees + LogRows)) <= kMaxInterleave)
    ((table.functions[LogTrees][LogRows][Endings] =
          &walk<Target, View, 1u << LogTrees, 1u << LogRows, ending_at(Endings)>),
     ...);
}

template <class Target, class View, unsigned... Pairs>
constexpr WalkerTable make(std::integer_sequence<unsigned, Pairs...>) {
  WalkerTable table;
  (fill<Target, View, Pairs / kInterleaveSteps, Pairs % kInterleaveSteps>(
       table, std::make_integer_sequence<unsigned, kEndings>{}),
   ...);
  return table;
}

}  // namespace walker_rows

template <class Target, class View>
inline constexpr WalkerTable kWalkers = walker_rows::make<Target, View>(
    std::make_integer_sequence<unsigned, kInterleaveSteps * kInterleaveSteps>{});

}  // namespace forestvm::host
