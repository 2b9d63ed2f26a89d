// The difference between the nightly run and the daily one. A test that has more cases than it can run by day
// runs a sample of them by day and all of them at night.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace forestvm::support {

/// Returns whether this is the nightly run: FORESTVM_NIGHTLY is 1, set by `./dev nightly` (ctest -C nightly).
bool nightly();

/// Returns the indices, below `count`, of the cases to run, ascending: all at night; by day at most `most`,
/// one in each of `most` stretches of nearly equal length, at positions that depend only on `of`. Tests that
/// run the same cases on several things pass the thing's name, so that each case runs on some of them.
std::vector<std::size_t> sampled(std::size_t count, std::size_t most, std::string_view of = {});

}  // namespace forestvm::support
