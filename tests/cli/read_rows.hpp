// Reads rows from texts, and makes NPY files of values, for the tests of the row readers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/io/cell_value.hpp"
#include "cli/io/npy.hpp"
#include "cli/io/rows.hpp"

namespace forestvm::cli {

inline constexpr float kInf = std::numeric_limits<float>::infinity();

using Names = std::vector<std::string_view>;

inline Result<Rows> rows_of(Source source, const RowForm& form) {
  FVM_ASSIGN(RowReader reader, RowReader::open(std::move(source), form));
  Rows rows;
  FVM_TRY(reader.next(std::numeric_limits<std::size_t>::max(), rows));
  return rows;
}

inline Result<Rows> rows_of(std::string text, const RowForm& form) {
  return rows_of(Source::from_text(std::move(text)), form);
}

inline Result<Rows> rows_of(std::string text, std::size_t width, const Names& names = {}) {
  return rows_of(std::move(text), RowForm{width, names});
}

/// Returns the error's text, or what was accepted instead.
inline std::string refusal(std::string text, const RowForm& form) {
  const auto rows = rows_of(std::move(text), form);
  if (rows) return "accepted " + std::to_string(rows->count) + " rows";
  EXPECT_EQ(rows.error().code, ErrorCode::Refused);
  return rows.error().text();
}

inline std::string refusal(std::string text, std::size_t width, const Names& names = {}) {
  return refusal(std::move(text), RowForm{width, names});
}

/// Returns the notice for the user about how a file is read.
inline std::string notice(std::string text, const RowForm& form) {
  const auto reader = RowReader::open(Source::from_text(std::move(text)), form);
  return reader ? reader->notice() : reader.error().text();
}

/// Compares numbers: NaN equals NaN, -0 differs from 0.
template <class Number>
void expect_numbers(const std::vector<Number>& found, const std::vector<Number>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(found[i])) << i;
    } else {
      EXPECT_EQ(found[i], expected[i]) << i;
      EXPECT_EQ(std::signbit(found[i]), std::signbit(expected[i])) << i;
    }
  }
}

inline void expect_values(const Result<Rows>& rows, const std::vector<float>& expected) {
  ASSERT_TRUE(rows.ok()) << rows.error().text();
  EXPECT_EQ(rows->type, RowType::Float32);
  expect_numbers(rows->values, expected);
}

inline void expect_wide_values(const Result<Rows>& rows, const std::vector<double>& expected) {
  ASSERT_TRUE(rows.ok()) << rows.error().text();
  EXPECT_EQ(rows->type, RowType::Float64);
  expect_numbers(rows->wide_values, expected);
}

template <class T>
std::string bytes_of(const std::vector<T>& values, bool swapped = false) {
  std::string out;
  for (const T& value : values) {
    std::string one(sizeof(T), '\0');
    std::memcpy(one.data(), &value, sizeof(T));
    out += swapped ? std::string(one.rbegin(), one.rend()) : one;
  }
  return out;
}

inline std::string npy(std::string_view dictionary, const std::string& data, char major = 1) {
  std::string text(dictionary);
  text += '\n';
  std::string out(kNpyMagic);
  out += {major, '\0', static_cast<char>(text.size() & 0xffU), static_cast<char>(text.size() >> 8U)};
  if (major > 1) out += std::string(2, '\0');
  return out + text + data;
}

inline std::string npy2(std::string_view dtype, const std::string& data, std::string_view shape = "(2, 2)",
                        bool fortran = false) {
  return npy("{'descr': '" + std::string(dtype) + "', 'fortran_order': " + (fortran ? "True" : "False") +
                 ", 'shape': " + std::string(shape) + ", }",
             data);
}

/// The end of the error about a text that is no value.
inline const std::string kNoValue =
    " is not a number, true or false (a missing value is an empty cell, nan, or a word of --na)";

/// The end of the error about a number that a model comparing in float64 cannot take rounded.
inline const std::string kNotExact =
    " is not a float64 number, and rounded it could go another way in this model, which compares in float64; if "
    "rounding is meant, give the rows as a float64 .npy array";

}  // namespace forestvm::cli
