// Compares numbers by their bits, so that NaN equals itself and 0 differs from -0.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace forestvm::support {

/// Expects the same numbers; `what` names them in the message of a failure.
inline void expect_same_bits(const std::vector<double>& got, const std::vector<double>& expected,
                             const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint64_t>(got[i]), std::bit_cast<std::uint64_t>(expected[i]))
        << what << ", number " << i << " of " << got.size() << ": " << got[i] << " and " << expected[i];
}

}  // namespace forestvm::support
