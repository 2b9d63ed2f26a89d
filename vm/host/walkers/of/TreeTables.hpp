// The walkers of tree tables.
#pragma once

#include "vm/host/walkers/tables_walk.hpp"
#include "vm/host/walkers/walker_table.hpp"

namespace forestvm::host {

/// One, as of tables.
template <class Target>
inline constexpr WalkerTable kWalkers<Target, TreeTablesView> =
    WalkerTable::of(&TablesWalk<Target, TreeTablesView>::walk);

}  // namespace forestvm::host
