// All walkers of one layout on one CPU target, as a table that gives a function for each WalkerDesc. A layout with
// better walkers than those of walk.hpp specialises kWalkers and kOwnWalkers in walkers/of/<layout>.hpp, which only
// its own files read.
#pragma once

#include <bit>

#include "vm/host/walkers/walk.hpp"

namespace forestvm::host {

/// Interleavings are counted by their logarithms: 1 … 128 trees by 1 … 128 rows, at most 128 walks.
inline constexpr unsigned kInterleaveSteps = std::bit_width(kMaxInterleave);

/// The walkers of a layout. Each field takes precedence over the fields below it.
struct WalkerTable {
  WalkFunction every = nullptr;               ///< Walker for every description, or null.
  WalkFunction rows[kInterleaveSteps] = {};   ///< Walkers [i] for 2^i rows of one tree, or null.
  WalkFunction trees[kInterleaveSteps] = {};  ///< Walkers [i] for 2^i trees of one row, or null.
  WalkFunction in_tiles = nullptr;            ///< walk_in_tiles, or null.
  const TileFunctions* tiles = nullptr;       ///< The functions that walk_in_tiles calls.

  template <class Target, class View>
  static constexpr WalkerTable scalar() {
    return {.in_tiles = &walk_in_tiles<Target>, .tiles = &kTiles<Target, View>};
  }

  /// Returns the walker for a verified description; one without a function if the table has none.
  Walker find(const WalkerDesc& desc) const {
    const auto log_trees = static_cast<unsigned>(std::countr_zero(desc.interleaved_trees));
    const auto log_rows = static_cast<unsigned>(std::countr_zero(desc.interleaved_rows));
    if (every != nullptr) return {every};
    if (log_trees == 0 && rows[log_rows] != nullptr) return {rows[log_rows]};
    if (log_rows == 0 && trees[log_trees] != nullptr) return {trees[log_trees]};
    if (tiles == nullptr) return {};
    return {in_tiles, tiles->interleaving(log_trees, log_rows)};
  }
};

/// The walkers of the first of the CPU targets that are built: one for every description.
template <class Target, class View>
inline constexpr WalkerTable kWalkers = WalkerTable::scalar<Target, View>();

/// The walkers of a later target: the walkers that its instructions make faster than the first target's.
template <class Target, class View>
inline constexpr WalkerTable kOwnWalkers;

}  // namespace forestvm::host
