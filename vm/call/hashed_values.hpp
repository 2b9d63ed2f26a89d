// The codes of hashed features: turns the values of a call's rows into the codes of the categories for which they
// stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/backend.hpp>
#include <forestvm/result.hpp>

namespace forestvm::host {

/// Writes the codes of `features`, as bits of an int32, to their columns in `count` rows of `width` values at `out`.
/// It reads the features' values from `rows`, from row `begin` on. Usage for rows of codes in a type that does not
/// hold them; Refused, with row and column, for a value that is no category.
Result<void> fill_codes(std::span<const std::uint32_t> features, const RowBlock& rows, std::size_t begin,
                        std::size_t count, std::size_t width, float* out);
/// Writes the codes of `features` for sparse rows, which have been checked.
Result<void> fill_codes(std::span<const std::uint32_t> features, const CsrRows& rows, std::size_t begin,
                        std::size_t count, std::size_t width, float* out);
/// Writes the codes of `features` for columns, whose indices stand for codes.
Result<void> fill_codes(std::span<const std::uint32_t> features, const ColumnRows& rows, std::size_t begin,
                        std::size_t count, std::size_t width, float* out);

}  // namespace forestvm::host
