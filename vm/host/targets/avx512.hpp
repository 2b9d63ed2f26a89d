// The AVX-512 target: x86-64-v4 with VBMI, whose byte permutes look tables up.
#pragma once

#include <cpuid.h>

#include "vm/host/simd/avx512.hpp"
#include "vm/host/simd/avx512_lanes.hpp"
#include "vm/host/simd/avx512_tree_rows.hpp"
#include "vm/host/simd/tile_compare.hpp"

namespace forestvm::host {
struct Avx512Search;  // avx512_search.hpp, which the walkers do not need
}

namespace forestvm::host::target_Avx512 {

struct Target : TileCompare, Avx512TreeRows {
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
  static CpuTarget cpu() {
    constexpr unsigned kFeatures = 7, kAvx512Fp16 = 1u << 23;  // in edx; Clang 14 has no name for it
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    const bool known = __get_cpuid_count(kFeatures, 0, &eax, &ebx, &ecx, &edx) != 0;
    return known && (edx & kAvx512Fp16) != 0 ? CpuTarget::Avx512Fp16 : CpuTarget::Avx512;
  }
};

}  // namespace forestvm::host::target_Avx512
