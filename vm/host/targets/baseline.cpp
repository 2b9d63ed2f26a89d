// The baseline target: scalar walkers that every supported CPU runs.
#include <forestvm/core/layouts.hpp>

#include "vm/host/targets/target.hpp"

namespace forestvm::host::target_Baseline {

namespace {
struct Tag;
}

bool runs_here() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
#else
  return true;
#endif
}

const WalkerTable& walkers(Layout layout) {
  switch (layout) {
#define FVM_LAYOUT(Name, text, View, meaning) \
  case Layout::Name:                          \
    return kWalkers<Tag, View>;
#include <forestvm/core/layouts.def>
  }
  return kWalkers<Tag, SparseView>;
}

}  // namespace forestvm::host::target_Baseline
