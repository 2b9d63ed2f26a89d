// Reads columns: the numbers that walks compare, a block of rows at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <forestvm/backend.hpp>
#include <forestvm/internal/category_texts.hpp>
#include <forestvm/internal/column_set.hpp>
#include <forestvm/internal/value_rules.hpp>
#include <forestvm/result.hpp>

namespace forestvm::host {

/// The most rows that read_column reads.
inline constexpr std::size_t kColumnRows = 64;
static_assert(kColumnRows == kRoundedAtOnce);

/// Returns a bit for each of `count` rows, at most 64, from row `row` on, the first row's lowest: 1 if it has a value.
std::uint64_t present(const Column& column, std::size_t row, std::size_t count);

/// Returns the value of a row that has one: the float64 nearest to a number or bit, or what an index stands for.
double number_at(const Column& column, std::size_t row);

/// Returns the text of a column of texts in a row that has one. Usage, without a place, if it leaves its memory.
Result<std::string_view> text_at(const Column& column, std::size_t row);

/// Writes what walks compare for up to kColumnRows rows of a feature, whose column holds no texts, to `out`. Indices
/// that the dictionary lacks are missing.
void read_column(const ValueRules& rules, const Column& column, std::uint32_t feature, std::size_t row,
                 std::size_t count, float* out);

/// Writes what walks compare for a column of texts. Errors name the row and the column.
Result<void> read_texts(const ValueRules& rules, const CategoryTexts& texts, const Column& column,
                        std::uint32_t feature, std::size_t row, std::size_t count, float* out);

/// Checks that rows of a column, which holds no texts, have the indices that its dictionary has and, if the program
/// compares in float64, that each number is a float64. Errors name the row and the column.
Result<void> check_column(const ValueRules& rules, const Column& column, std::uint32_t feature,
                          std::size_t row, std::size_t count);

}  // namespace forestvm::host
