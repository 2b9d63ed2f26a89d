// Converts dense rows of any type to float32 rows as walks read them.
#pragma once

#include <cstddef>

#include <forestvm/backend.hpp>
#include <forestvm/internal/value_rules.hpp>

namespace forestvm::host {

/// Writes what walks compare for `width` values of each of `count` rows from `first` on, one row after the other.
void convert_rows(const ValueRules& rules, const RowBlock& rows, std::size_t first, std::size_t count,
                  std::size_t width, float* out);

}  // namespace forestvm::host
