// What the nightly run does beyond the daily one. A test that has more cases than a day has time for tries a
// sample of them by day and all of them at night.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace forestvm::support {

/// Whether this is the nightly run: FORESTVM_NIGHTLY is 1, as `./dev nightly` (ctest -C nightly) sets it.
bool nightly();

/// The numbers below `count` of the cases to try, ascending: at night all of them, by day at most `most`.
/// Those lie one in each of as many stretches of nearly equal length, at places that `of` alone decides:
/// tests that try the same cases on several things name the thing, so that each case is tried on some.
std::vector<std::size_t> sampled(std::size_t count, std::size_t most, std::string_view of = {});

}  // namespace forestvm::support
