// The baseline target, which every supported CPU runs.
#pragma once

#include "vm/host/simd/bytes16.hpp"
#include "vm/host/simd/tile_compare.hpp"

namespace forestvm::host {
struct ScalarSearch;  // baseline_search.hpp, which the walkers do not need
}

namespace forestvm::host::target_Baseline {

struct Target : TileCompare {
  using Codes = Bytes16;
  using Search = ScalarSearch;

  static bool runs_here() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
#else
    return true;
#endif
  }
};

}  // namespace forestvm::host::target_Baseline
