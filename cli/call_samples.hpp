// Times calls of several callers in turns, for `bench`. A sample is the mean over about a millisecond of calls.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/repeated_rows.hpp"

namespace forestvm::cli {

/// Returns the least of the values that at least this share of them does not exceed (nearest rank). Reorders the
/// values.
template <class T>
double quantile(std::vector<T>& values, double share) {
  const double rank = std::max(std::ceil(share * static_cast<double>(values.size())), 1.0);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::nth_element(values.begin(), at, values.end());
  return static_cast<double>(*at);
}

/// The samples of one caller.
struct CallSamples {
  std::uint64_t calls_per_sample = 1;
  std::vector<double> seconds{};  ///< Time of a call in each sample.
  Seconds spent{0};

  double least() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double median() { return quantile(seconds, 0.5); }
  std::uint64_t calls() const { return seconds.size() * calls_per_sample; }
};

/// Takes samples of the callers in turns until each has used its budget, after warming each up for a tenth of it. Turns
/// make a disturbance of the machine affect all callers alike.
Result<std::vector<CallSamples>> samples_in_turns(std::vector<Caller>& callers, Seconds budget);

}  // namespace forestvm::cli
