// The walkers of the tables layout.
#pragma once

#include "vm/host/walkers/tables_walk.hpp"
#include "vm/host/walkers/walker_table.hpp"

namespace forestvm::host {

/// Tables have one walker: it takes more rows in lockstep than any interleaving asks for, all hops unchecked.
template <class Target>
inline constexpr WalkerTable kWalkers<Target, TablesView> =
    WalkerTable::of(&TablesWalk<Target, TablesView>::walk);

}  // namespace forestvm::host
