// The walkers of the sparse8 layout.
#pragma once

#include "vm/host/walkers/lanes_table.hpp"

namespace forestvm::host {

template <class Target>
inline constexpr WalkerTable kOwnWalkers<Target, Sparse8View> =
    walker_rows::with_lanes<Target, Sparse8View>({});

template <class Target>
inline constexpr WalkerTable kWalkers<Target, Sparse8View> =
    walker_rows::with_lanes<Target, Sparse8View>(WalkerTable::scalar<Target, Sparse8View>());

}  // namespace forestvm::host
