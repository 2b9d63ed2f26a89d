// Transposes numbers in memory, four by four in vectors of the compiler, which any CPU target has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <forestvm/core/platform.hpp>

namespace forestvm::host {

/// Copies four numbers of four rows: number j of row i, from[i * stride + j], goes to to[j * width + i]. Functions that
/// are inlined leave no copy for one CPU target that others would call.
template <class Number>
FVM_INLINE void transpose_4(const Number* from, std::size_t stride, Number* to, std::size_t width) {
  typedef Number Four __attribute__((vector_size(4 * sizeof(Number))));
  Four a, b, c, d;
  std::memcpy(&a, from, sizeof a);
  std::memcpy(&b, from + stride, sizeof b);
  std::memcpy(&c, from + 2 * stride, sizeof c);
  std::memcpy(&d, from + 3 * stride, sizeof d);
  const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four ef = __builtin_shufflevector(a, b, 2, 6, 3, 7), gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const auto store = [&](std::size_t j, const Four& row) __attribute__((always_inline)) {
    std::memcpy(to + j * width, &row, sizeof row);
  };
  store(0, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  store(1, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  store(2, __builtin_shufflevector(ef, gh, 0, 1, 4, 5));
  store(3, __builtin_shufflevector(ef, gh, 2, 3, 6, 7));
}

/// Copies four rows of three numbers that follow each other in memory to the beginnings of three rows.
template <class Number>
FVM_INLINE void split_threes(const Number* from, Number* to, std::size_t width) {
  typedef Number Four __attribute__((vector_size(4 * sizeof(Number))));
  Four a, b, c;
  std::memcpy(&a, from, sizeof a);
  std::memcpy(&b, from + 4, sizeof b);
  std::memcpy(&c, from + 8, sizeof c);
  const Four x = __builtin_shufflevector(__builtin_shufflevector(a, b, 0, 3, 6, 6), c, 0, 1, 2, 5);
  const Four y = __builtin_shufflevector(__builtin_shufflevector(a, b, 1, 4, 7, 7), c, 0, 1, 2, 6);
  const Four z = __builtin_shufflevector(__builtin_shufflevector(a, b, 2, 5, 5, 5), c, 0, 1, 4, 7);
  std::memcpy(to, &x, sizeof x);
  std::memcpy(to + width, &y, sizeof y);
  std::memcpy(to + 2 * width, &z, sizeof z);
}

/// Copies the first four numbers of three rows to four rows of three numbers that follow each other in memory.
template <class Number>
FVM_INLINE void join_threes(const Number* from, std::size_t stride, Number* to) {
  typedef Number Four __attribute__((vector_size(4 * sizeof(Number))));
  Four x, y, z;
  std::memcpy(&x, from, sizeof x);
  std::memcpy(&y, from + stride, sizeof y);
  std::memcpy(&z, from + 2 * stride, sizeof z);
  const Four a = __builtin_shufflevector(__builtin_shufflevector(x, y, 0, 4, 1, 1), z, 0, 1, 4, 2);
  const Four b = __builtin_shufflevector(__builtin_shufflevector(y, z, 1, 5, 2, 2), x, 0, 1, 6, 2);
  const Four c = __builtin_shufflevector(__builtin_shufflevector(x, y, 3, 7, 3, 3), z, 6, 0, 1, 7);
  std::memcpy(to, &a, sizeof a);
  std::memcpy(to + 4, &b, sizeof b);
  std::memcpy(to + 8, &c, sizeof c);
}

/// Does what transpose() does for kRows rows.
template <std::size_t kRows, class Number>
FVM_INLINE void transpose_rows(const Number* from, std::size_t stride, std::size_t count, Number* to,
                               std::size_t width) {
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t i = 0; i < kRows; ++i) to[j * width + i] = from[i * stride + j];
}

/// Does what transpose() does for `count` rows of kCount numbers.
template <std::size_t kCount, class Number>
FVM_INLINE void transpose_columns(const Number* from, std::size_t stride, std::size_t count, Number* to,
                                  std::size_t width) {
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < kCount; ++j) to[j * width + i] = from[i * stride + j];
}

/// Copies `rows` rows of `count` numbers: number j of row i, from[i * stride + j], goes to to[j * width + i].
template <class Number>
FVM_INLINE void transpose(const Number* from, std::size_t stride, std::size_t rows, std::size_t count,
                          Number* to, std::size_t width) {
  if (rows >= 4 && count >= 4) {
    // The last four may contain some of those before: these are copied twice. The inner loop goes through the shorter
    // side, so that lines which are read or written in parts are needed again while they are in the cache.
    const bool wide = count > rows;
    const std::size_t longer = wide ? count : rows, shorter = wide ? rows : count;
    const std::size_t from_a = wide ? 1 : stride, to_a = wide ? width : 1;
    const std::size_t from_b = wide ? stride : 1, to_b = wide ? 1 : width;
    for (std::size_t i = 0; i < longer; i += 4) {
      const std::size_t a = std::min(i, longer - 4);
      for (std::size_t j = 0; j < shorter; j += 4) {
        const std::size_t b = std::min(j, shorter - 4);
        transpose_4(from + a * from_a + b * from_b, stride, to + a * to_a + b * to_b, width);
      }
    }
    return;
  }
#if defined(__AVX__)
  // Here, too, the last four may contain some of those before. Targets whose vectors hold two float64 numbers have
  // loops instead, whose code is smaller.
  if (stride == 3 && count == 3 && rows >= 4) {
    for (std::size_t i = 0; i < rows; i += 4) {
      const std::size_t row = std::min(i, rows - 4);
      split_threes(from + 3 * row, to + row, width);
    }
    return;
  }
  if (width == 3 && rows == 3 && count >= 4) {
    for (std::size_t j = 0; j < count; j += 4) {
      const std::size_t number = std::min(j, count - 4);
      join_threes(from + number, stride, to + 3 * number);
    }
    return;
  }
#endif
  if (stride == 1 && count == 1) return static_cast<void>(std::copy_n(from, rows, to));
  if (width == 1 && rows == 1) return static_cast<void>(std::copy_n(from, count, to));
  // A loop of few turns takes longer than what it does, unless the compiler knows their number.
  if (count == 2) return transpose_columns<2>(from, stride, rows, to, width);
  if (count == 3) return transpose_columns<3>(from, stride, rows, to, width);
  if (rows == 2) return transpose_rows<2>(from, stride, count, to, width);
  if (rows == 3) return transpose_rows<3>(from, stride, count, to, width);
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t i = 0; i < rows; ++i) to[j * width + i] = from[i * stride + j];
}

}  // namespace forestvm::host
