// The dense rows that sparse rows stand for.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/backend.hpp>

namespace forestvm::host {

/// Writes `width` values of each of `count` checked rows, one row after the other.
void fill_csr_rows(const CsrRows& rows, std::size_t first, std::size_t count, std::size_t width, float* out);

/// The number that an absent value stands for.
float absent_value(Absent absent);

}  // namespace forestvm::host
