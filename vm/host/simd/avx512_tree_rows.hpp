// Writes outputs of trees row by row (see tree_rows.hpp), 16 trees at a time. A row's outputs go to memory in whole
// lines, whatever its alignment: a line has the last outputs of the 16 trees before and the first of these.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include <forestvm/core/platform.hpp>

#include "vm/host/simd/stream.hpp"
#include "vm/host/tree_rows.hpp"

namespace forestvm::host {

struct Avx512TreeRows {
  /// Writes whole lines by Store, which takes an aligned address and a vector.
  template <class Store>
  FVM_INLINE static void store_lines(const TreeRowsTask& task, const Store& store) {
    static constexpr std::int32_t kNumbers[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                  11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                  22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    float* lines[kTreeRows];                // where each row's next line begins
    const std::int32_t* shifts[kTreeRows];  // for each row, which numbers of two vectors make a line
    __m512 before[kTreeRows], rows[kTreeRows];
    transpose(task.leaves, task.stride, before);
    for (std::size_t i = 0; i < kTreeRows; ++i) {
      float* const row = task.to + i * task.width;
      const std::size_t first = before_line(row);
      _mm512_mask_storeu_ps(row, static_cast<__mmask16>((1U << first) - 1), before[i]);
      lines[i] = row + first;
      shifts[i] = kNumbers + first;
    }
    std::size_t tree = kTreeRows;
    for (; task.trees - tree >= kTreeRows; tree += kTreeRows) {
      transpose(task.leaves + tree * task.stride, task.stride, rows);
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kTreeRows; ++i) {
        store(lines[i], _mm512_permutex2var_ps(before[i], _mm512_loadu_si512(shifts[i]), rows[i]));
        lines[i] += kTreeRows;
        before[i] = rows[i];
      }
    }
    // The last line of a row is not whole, unless its first was.
    for (std::size_t i = 0; i < kTreeRows; ++i) {
      const auto shift = static_cast<unsigned>(shifts[i] - kNumbers);
      _mm512_mask_storeu_ps(lines[i] - shift, static_cast<__mmask16>(0xffffU << shift), before[i]);
    }
    if (tree == task.trees) return;
    // The last 16 trees contain some of those before, which are written twice.
    transpose(task.leaves + (task.trees - kTreeRows) * task.stride, task.stride, rows);
    for (std::size_t i = 0; i < kTreeRows; ++i)
      _mm512_storeu_ps(task.to + i * task.width + task.trees - kTreeRows, rows[i]);
  }

  FVM_INLINE static void store_lines(const TreeRowsTask& task) {
    if (task.is_large)
      store_lines(
          task, [](float* to, __m512 line) __attribute__((always_inline)) { _mm512_stream_ps(to, line); });
    else
      store_lines(
          task, [](float* to, __m512 line) __attribute__((always_inline)) { _mm512_store_ps(to, line); });
  }

 private:
  /// Makes vectors of the outputs of 16 trees: one for each row.
  FVM_INLINE static void transpose(const float* from, std::size_t stride, __m512 (&rows)[kTreeRows]) {
    // Each vector has four rows of trees t, t + 4, t + 8 and t + 12 in its parts of 16 bytes.
#pragma GCC unroll 4
    for (std::size_t part = 0; part < 4; ++part) {
      const auto four = [&](std::size_t tree) __attribute__((always_inline)) {
        const float* const at = from + tree * stride + 4 * part;
        __m512 trees = _mm512_castps128_ps512(_mm_loadu_ps(at));
        trees = _mm512_insertf32x4(trees, _mm_loadu_ps(at + 4 * stride), 1);
        trees = _mm512_insertf32x4(trees, _mm_loadu_ps(at + 8 * stride), 2);
        return _mm512_insertf32x4(trees, _mm_loadu_ps(at + 12 * stride), 3);
      };
      const __m512 a = four(0), b = four(1), c = four(2), d = four(3);
      const __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b)),
                    cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d)),
                    ef = _mm512_castps_pd(_mm512_unpackhi_ps(a, b)),
                    gh = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
      rows[4 * part] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd));
      rows[4 * part + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd));
      rows[4 * part + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(ef, gh));
      rows[4 * part + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(ef, gh));
    }
  }
};

}  // namespace forestvm::host
