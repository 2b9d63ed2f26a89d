// The walkers of the layouts of tables.
#pragma once

#include <concepts>

#include "vm/host/walkers/tables_walk.hpp"
#include "vm/host/walkers/walker_table.hpp"

namespace forestvm::host {

template <class View>
concept HasTables = std::derived_from<View, TablesView> || std::same_as<View, TopTablesView>;

/// The one walker of tables. It takes more rows in lockstep than any interleaving asks for, and all steps
/// without leaf checks.
template <class Target, HasTables View>
inline constexpr WalkerTable kOwnWalkers<Target, View> = {.every = &TablesWalk<Target, View>::walk};

template <class Target, HasTables View>
inline constexpr WalkerTable kWalkers<Target, View> = kOwnWalkers<Target, View>;

}  // namespace forestvm::host
