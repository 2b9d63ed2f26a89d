// The features of a walk by which its cost is predicted: walk_features.def.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <forestvm/core/bytecode.hpp>

#include "scheduler/choose/forest_facts.hpp"
#include "scheduler/choose/walk_choice.hpp"

namespace forestvm::scheduler {

/// A call for which a walk is chosen.
struct WalkCall {
  std::uint32_t rows = 1;
  bool has_avx512 = false;
  bool has_fast_gathers = false;  ///< The CPU's gathers are fast compared with its lookups in tables.
};

/// Returns the call of `rows` rows on a CPU.
constexpr WalkCall call_on(CpuTarget cpu, std::uint32_t rows) {
  return {rows, cpu >= CpuTarget::Avx512, cpu == CpuTarget::Avx512Fp16};
}

/// A kind of CPU that plans tell apart. kCpusOfPlans has the narrowest target first.
struct CpuOfPlan {
  CpuTarget cpu;            ///< The last one stands for all others.
  std::string_view target;  ///< The target in schedules; the last has none.
};
inline constexpr CpuOfPlan kCpusOfPlans[] = {
    {CpuTarget::Avx512Fp16, "avx512fp16"}, {CpuTarget::Avx512, "avx512"}, {CpuTarget::Avx2, {}}};

inline constexpr std::string_view kWalkFeatureNames[] = {
#define FVM_WALK_FEATURE(name, value) #name,
#include "scheduler/choose/walk_features.def"
};
inline constexpr std::size_t kWalkFeatures = std::size(kWalkFeatureNames);

using WalkFeatures = std::array<float, kWalkFeatures>;

WalkFeatures walk_features(const ForestFacts& facts, const WalkCall& call, const WalkChoice& walk);

}  // namespace forestvm::scheduler
