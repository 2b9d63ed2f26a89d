// The AVX-512 target: x86-64-v4 with VBMI, whose byte permutes look tables up.
#pragma once

#include "vm/host/simd/avx512.hpp"
#include "vm/host/simd/avx512_lanes.hpp"
#include "vm/host/simd/tile_compare.hpp"

namespace forestvm::host {
struct Avx512Search;  // avx512_search.hpp, which the walkers do not need
}

namespace forestvm::host::target_Avx512 {

struct Target : TileCompare {
  using Codes = Avx512Bytes;
  using Search = Avx512Search;
  using Lanes = Avx512Lanes;

  static bool runs_here() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("popcnt");
  }
};

}  // namespace forestvm::host::target_Avx512
