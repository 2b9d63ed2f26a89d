// Checks sparse rows, and fills in the dense rows that they stand for.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/backend.hpp>
#include <forestvm/internal/value_rules.hpp>
#include <forestvm/result.hpp>

namespace forestvm::host {

/// Checks that `count` rows from `first` on lie inside the values and name features below `num_features`. Usage
/// errors say which row is wrong.
Result<void> check_csr_rows(const CsrRows& rows, std::size_t first, std::size_t count,
                            std::uint32_t num_features);

/// Writes what walks compare for each of `count` checked rows from `first` on: `width` values of a row, one row
/// after the other.
void fill_csr_rows(const ValueRules& rules, const CsrRows& rows, std::size_t first, std::size_t count,
                   std::size_t width, float* out);

/// Returns the number that an absent value stands for.
float absent_value(Absent absent);

}  // namespace forestvm::host
