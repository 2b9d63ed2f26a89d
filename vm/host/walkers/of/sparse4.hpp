// The walkers of the sparse4 layout.
#pragma once

#include "vm/host/walkers/lanes_table.hpp"

namespace forestvm::host {

template <class Target>
inline constexpr WalkerTable kOwnWalkers<Target, Sparse4View> =
    walker_rows::with_lanes<Target, Sparse4View>({});

template <class Target>
inline constexpr WalkerTable kWalkers<Target, Sparse4View> =
    walker_rows::with_lanes<Target, Sparse4View>(WalkerTable::scalar<Target, Sparse4View>());

}  // namespace forestvm::host
