// See call_samples.hpp.
#include "cli/call_samples.hpp"

#include <utility>

namespace forestvm::cli {
namespace {

constexpr Seconds kSample{1e-3};
constexpr Seconds kLeast{1e-9};  ///< The time that calls are taken to need if the clock shows none.

/// Warms the caller up, and chooses the number of calls of a sample.
Result<CallSamples> begin_samples(Caller& caller, Seconds budget) {
  CallSamples samples;
  Seconds once{0};
  for (Seconds warm{0}; warm < budget / 10 || once == Seconds{0}; warm += once) {
    FVM_ASSIGN(once, caller.time(1));
    once = std::max(once, kLeast);
  }
  samples.calls_per_sample = static_cast<std::uint64_t>(std::clamp(kSample / once, 1.0, 1e6));
  return samples;
}

}  // namespace

Result<std::vector<CallSamples>> samples_in_turns(std::vector<Caller>& callers, Seconds budget) {
  std::vector<CallSamples> all;
  for (Caller& caller : callers) {
    FVM_ASSIGN(CallSamples samples, begin_samples(caller, budget));
    all.push_back(std::move(samples));
  }
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::size_t i = 0; i < callers.size(); ++i) {
      CallSamples& mine = all[i];
      if (mine.spent >= budget) continue;
      FVM_ASSIGN(const Seconds time, callers[i].time(mine.calls_per_sample));
      mine.spent += std::max(time, kLeast);
      mine.seconds.push_back(time.count() / static_cast<double>(mine.calls_per_sample));
      goes_on = true;
    }
  }
  return all;
}

}  // namespace forestvm::cli
