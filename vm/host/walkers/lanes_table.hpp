// The walkers of a compact sparse layout: on targets that have vectors of lanes, walkers of wide
// interleavings use them.
#pragma once

#include <algorithm>
#include <optional>

#include "vm/host/walkers/gather_walk.hpp"
#include "vm/host/walkers/walker_table.hpp"

namespace forestvm::host {
namespace walker_rows {

/// Returns the walker whose lanes are this many walks, which are rows of a tree or trees of a row, if there is one.
/// The codes of different rows lie apart, so that walkers of codes take only the trees of one row. The result is
/// optional because with GCC's sanitizers comparing a function with null is no constant expression.
template <class Target, class View, unsigned LogTrees, unsigned LogRows>
constexpr std::optional<WalkFunction> in_lanes() {
  using Walk = GatherWalk<Target, View>;
  constexpr unsigned lanes = Target::Lanes::kLanes, walks = 1u << (LogTrees + LogRows);
  constexpr unsigned vectors = std::min(walks / lanes, kMaxVectors);
  if constexpr (vectors >= 1 && LogRows == 0) return &Walk::template trees<vectors>;
  if constexpr (vectors >= 1 && LogTrees == 0 && !kTakesCodes<View>) return &Walk::template rows<vectors>;
  return std::nullopt;
}

/// Returns `table` with the walkers of lanes added.
template <class Target, class View, unsigned... Steps>
constexpr WalkerTable with_lanes(WalkerTable table, std::integer_sequence<unsigned, Steps...>) {
  const auto set = [](WalkFunction& walker, std::optional<WalkFunction> function) {
    if (function) walker = *function;
  };
  (set(table.rows[Steps], in_lanes<Target, View, 0, Steps>()), ...);
  (set(table.trees[Steps], in_lanes<Target, View, Steps, 0>()), ...);
  return table;
}

template <class Target, class View>
constexpr WalkerTable with_lanes(const WalkerTable& table) {
  if constexpr (requires { typename Target::Lanes; })
    return with_lanes<Target, View>(table, std::make_integer_sequence<unsigned, kInterleaveSteps>{});
  return table;
}

}  // namespace walker_rows
}  // namespace forestvm::host
