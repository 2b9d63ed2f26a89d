// The AVX2 target: x86-64-v3.
#pragma once

#include "vm/host/simd/avx2.hpp"
#include "vm/host/simd/avx2_lanes.hpp"
#include "vm/host/simd/tile_compare.hpp"

namespace forestvm::host {
struct Avx2Search;  // avx2_search.hpp, which the walkers do not need
}

namespace forestvm::host::target_Avx2 {

struct Target : TileCompare {
  using Codes = Avx2Bytes;
  using Search = Avx2Search;
  using Lanes = Avx2Lanes;

  static bool runs_here() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("popcnt");
  }
  static CpuTarget cpu() { return CpuTarget::Avx2; }
};

}  // namespace forestvm::host::target_Avx2
