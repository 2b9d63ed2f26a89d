// The baseline target, which every supported CPU runs.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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
    // __builtin_cpu_supports would link libgcc's tests of every other feature too, 5 kB.
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_SSE4_2) != 0 && (ecx & bit_POPCNT) != 0;
#else
    return true;
#endif
  }
  static CpuTarget cpu() { return CpuTarget::Baseline; }
};

}  // namespace forestvm::host::target_Baseline
