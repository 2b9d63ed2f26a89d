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
  FVM_INLINE static void store_lines(const TreeRowsTask& task) {
    static constexpr std::int32_t kNumbers[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                  11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                  22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    __m512 vectors[2][kTreeRows];   // of the rows' outputs for these trees and for those before, in turns
    std::size_t shifts[kTreeRows];  // numbers of each row before its first line
    for (std::size_t i = 0; i < kTreeRows; ++i) shifts[i] = before_line(task.to + i * task.width);
    // Loops over rows are not unrolled: that would take 10 kB, and save no time.
    std::size_t tree = 0;
    for (; task.trees - tree >= kTreeRows; tree += kTreeRows) {
      __m512* const these = vectors[tree / kTreeRows % 2];
      const __m512* const before = vectors[(tree / kTreeRows + 1) % 2];
      transpose(task.leaves + tree * task.stride, task.stride, these);
      float* row = task.to;
#pragma GCC unroll 1
      for (std::size_t i = 0; i < kTreeRows; ++i, row += task.width) {
        const std::size_t shift = shifts[i];
        if (tree == 0) {
          if (task.begins) _mm512_mask_storeu_ps(row, static_cast<__mmask16>((1U << shift) - 1), these[i]);
          continue;
        }
        float* const to = row + (tree - kTreeRows) + shift;
        const __m512 line = _mm512_permutex2var_ps(before[i], _mm512_loadu_si512(kNumbers + shift), these[i]);
        if (task.is_large)
          _mm512_stream_ps(to, line);
        else
          _mm512_store_ps(to, line);
      }
    }
    if (!task.ends) return;
    // The last line of a row is not whole, unless its first was.
    const __m512* const last = vectors[(tree / kTreeRows + 1) % 2];
    float* row = task.to + (tree - kTreeRows);
#pragma GCC unroll 1
    for (std::size_t i = 0; i < kTreeRows; ++i, row += task.width)
      _mm512_mask_storeu_ps(row, static_cast<__mmask16>(0xffffU << shifts[i]), last[i]);
    if (tree == task.trees) return;
    // The last 16 trees contain some of those before, which are written twice.
    transpose(task.leaves + (task.trees - kTreeRows) * task.stride, task.stride, vectors[0]);
    row = task.to + (task.trees - kTreeRows);
#pragma GCC unroll 1
    for (std::size_t i = 0; i < kTreeRows; ++i, row += task.width) _mm512_storeu_ps(row, vectors[0][i]);
  }

 private:
  /// Makes vectors of the outputs of 16 trees: one for each row.
  FVM_INLINE static void transpose(const float* from, std::size_t stride, __m512* rows) {
    // Each vector has four rows of trees t, t + 4, t + 8 and t + 12 in its parts of 16 bytes.
#pragma GCC unroll 1
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
