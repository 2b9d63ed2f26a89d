/* A decision forest: 6 trees, 4 features, 1 outputs.
 * Trained by by-hand 1.0, objective binary:logistic; contract trainer, sums f32.
 * Schedule:
 *     tile(batch, b0, b1, 8)
 *     parallel(b0)
 * 656 bytes of constant tables, 256 bytes of stack for 64 rows at a time.
 * C99; compile with -ffp-contract=off where the compiler would fuse multiplications and additions.
 * Rows are of type float, `stride` numbers from one to the next; NaN is a missing value. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LEAF 0x80000000u

typedef struct { uint32_t begin, end, iteration; } forest_range;
static uint32_t forest_iterations(forest_range r, uint32_t step) {
  return r.end == r.begin ? 0u : (r.end - r.begin - 1u) / step + 1u;
}
static forest_range forest_chunk(forest_range r, uint32_t step, uint32_t i) {
  forest_range part;
  part.begin = r.begin + i * step;
  part.end = r.end - part.begin > step ? part.begin + step : r.end;
  part.iteration = i;
  return part;
}
static double forest_power_of_two(int32_t exponent) {
  const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return power;
}
static float forest_exp_f32(float x) {
  static const double factors[14] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                     1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0,
                                     1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0};
  double scaled, r, sum = 0.0, result;
  int32_t n;
  int i;
  if (x != x) return x;
  if (x > 88.8f) return 1.0f / 0.0f;
  if (x < -104.0f) return 0.0f;
  scaled = (double)x * 1.4426950408889634;
  n = (int32_t)((scaled + 6755399441055744.0) - 6755399441055744.0);
  r = ((double)x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  for (i = 0; i < 14; ++i) sum = sum * r + factors[i];
  result = sum * forest_power_of_two(n);
  return result > 3.4028234663852886e+38 ? 1.0f / 0.0f : (float)result;
}
static float forest_sigmoid_f32(float x) {
  return 1.0f / (forest_exp_f32(-x > 88.7f ? 88.7f : -x) + 1.0f);
}
static int forest_left(const float *x, uint32_t word, float threshold) {
  const uint32_t column = word & 0x3fffffffu;
  const float value = x[column];
  return value < threshold || (value != value && (word & 0x40000000u) != 0u);
}
static void forest_transform_f32(float *scores) {
  for (uint32_t i = 0u; i < 1u; ++i) scores[i] = forest_sigmoid_f32(scores[i]);
}
static void forest_label_f32(const float *values, int64_t *labels) {
  for (uint32_t i = 0u; i < 1u; ++i) labels[i] = values[i] > (float)0.5;
}

/* Group g0: trees 0 to 6, layout array, children at 2 i + 1 and 2 i + 2. */
static const float forest_g0_threshold[50] = {
    0x1p-1f, 0x0p+0f, 0x0p+0f, -0x1.8p+0f, 0x0p+0f, 0x0p+0f, 0x1p+1f, 0x1p-2f, 0x1p+3f, 0x0p+0f, 0x0p+0f,
    0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x1.8p+1f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x1p+0f, 0x1p+0f,
    0x1p+2f, 0x1p+0f, 0x1p+0f, 0x1p+1f, 0x1p+1f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f,
    0x0p+0f, 0x0p+0f, 0x1.8p+1f, 0x1p+1f, 0x0p+0f, 0x1p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f,
    0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f,
};
static const uint32_t forest_g0_word[50] = {
    0x40000000u, 0x80000000u, 0x80000001u, 0x40000001u, 0x80000002u, 0x80000003u, 2u, 0x40000000u,
    0x40000003u, 0x80000004u, 0x80000005u, 0x80000006u, 0x80000007u, 3u, 0x80000008u, 0x40000001u,
    0x80000008u, 0x80000008u, 0x80000009u, 0x8000000au, 0u, 1u, 2u, 0x40000002u, 0x40000003u, 0x40000000u,
    0x40000001u, 0x8000000bu, 0x8000000cu, 0x8000000du, 0x8000000eu, 0x8000000fu, 0x80000010u, 0x80000011u,
    0x80000012u, 0x40000002u, 1u, 0x80000013u, 0x40000000u, 0x80000014u, 0x80000013u, 0x80000013u,
    0x80000015u, 0x80000016u, 0x80000014u, 0x80000014u, 0x80000013u, 0x80000013u, 0x80000013u, 0x80000013u,
};
static const uint32_t forest_g0_root[6] = {
    0u, 3u, 6u, 13u, 20u, 35u,
};
static uint32_t forest_walk_g0(uint32_t tree, const float *x) {
  uint32_t at = 0u;
  for (;;) {
    const uint32_t node = forest_g0_root[tree] + at, word = forest_g0_word[node];
    if ((word & LEAF) != 0u) return word & ~LEAF;
    at = 2u * at + 2u - (uint32_t)forest_left(x, word, forest_g0_threshold[node]);
  }
}
static const float forest_g0_leaf_f32[23] = {
    0x1p-3f, -0x1p-3f, 0x1p-2f, -0x1p-2f, 0x1p+0f, -0x1p+0f, 0x1p+1f, -0x1p+1f, -0x1.8p-1f, 0x1p+2f, -0x1p+2f,
    0x1p+3f, -0x1p+3f, 0x1p+4f, -0x1p+4f, 0x1p+5f, -0x1p+5f, 0x1p+6f, -0x1p+6f, 0x1p-1f, 0x1p-2f, 0x1p-1f,
    0x0p+0f,
};
static const int32_t forest_g0_number[23] = {
    1, 2, 1, 2, 2, 3, 5, 6, 1, 3, 4, 3, 4, 6, 7, 10, 11, 13, 14, 6, 5, 3, 4,
};
static const uint32_t forest_g0_output[6] = {
    0u, 0u, 0u, 0u, 0u, 0u,
};
static const uint32_t forest_g0_tree[6] = {
    0u, 1u, 2u, 3u, 4u, 5u,
};

static const float forest_base_f32[1] = {
    0x1p-1f,
};

static void forest_run(const float *x, size_t stride, uint32_t count, uint32_t all, uint32_t want, void *out) {
  float a0[64];
  const size_t width = want == 1u ? 1u : want == 2u ? 1u : 1u;
  forest_range r0, r1, r2;
  uint32_t i2;
  uint32_t row;
  uint32_t tree;
  size_t k;
  (void)r2;
  r0.begin = 0u; r0.end = count; r0.iteration = 0u;
  r1.begin = 0u; r1.end = 6u; r1.iteration = 0u;
  (void)r0; (void)r1; (void)x; (void)stride; (void)all; (void)width;
  if (!(want == 3u)) {
    /* Iterations may run in parallel. */
    for (i2 = 0u; i2 < forest_iterations(r0, 8u); ++i2) {
      r2 = forest_chunk(r0, 8u, i2);
      for (row = r2.begin; row < r2.end; ++row)
        for (k = 0u; k < 1u; ++k) (a0 + ((size_t)(0u) * 64u + row) * 1u)[k] = forest_base_f32[k];
      for (row = r2.begin; row < r2.end; ++row)
        for (tree = r1.begin; tree < r1.end; ++tree) {
        const uint32_t t = tree - 0u;
        const uint32_t leaf = forest_walk_g0(t, x + (size_t)row * stride);
        (a0 + ((size_t)(0u) * 64u + row) * 1u)[forest_g0_output[t]] += forest_g0_leaf_f32[leaf];
      }
      if (want == 0u) {
        for (row = r2.begin; row < r2.end; ++row)
          memcpy((float *)out + (size_t)row * width, (a0 + ((size_t)(0u) * 64u + row) * 1u), width * sizeof(float));
      }
      if (want == 1u) {
        for (row = r2.begin; row < r2.end; ++row)
          forest_transform_f32((a0 + ((size_t)(0u) * 64u + row) * 1u));
        for (row = r2.begin; row < r2.end; ++row)
          memcpy((float *)out + (size_t)row * width, (a0 + ((size_t)(0u) * 64u + row) * 1u), width * sizeof(float));
      }
      if (want == 2u) {
        for (row = r2.begin; row < r2.end; ++row)
          forest_transform_f32((a0 + ((size_t)(0u) * 64u + row) * 1u));
        for (row = r2.begin; row < r2.end; ++row)
          forest_label_f32((a0 + ((size_t)(0u) * 64u + row) * 1u), (int64_t *)out + (size_t)row * width);
      }
    }
  }
  if (want == 3u) {
    /* Iterations may run in parallel. */
    for (i2 = 0u; i2 < forest_iterations(r0, 8u); ++i2) {
      r2 = forest_chunk(r0, 8u, i2);
      for (row = r2.begin; row < r2.end; ++row)
        for (tree = r1.begin; tree < r1.end; ++tree) {
        const uint32_t t = tree - 0u;
        const uint32_t leaf = forest_walk_g0(t, x + (size_t)row * stride);
        ((int32_t *)out)[(size_t)row * 6u + forest_g0_tree[t]] = forest_g0_number[leaf];
      }
    }
  }
}

/* Writes an output of `row_bytes` bytes for each row. The number of all rows chooses among plans. */
static void forest_answer(const float *rows, size_t count, size_t stride, uint32_t want, size_t row_bytes, void *out) {
  const uint32_t all = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
  size_t begin;
  for (begin = 0u; begin < count; begin += 64u) {
    const size_t left = count - begin;
    forest_run(rows + begin * stride, stride, (uint32_t)(left < 64u ? left : 64u), all, want, (char *)out + begin * row_bytes);
  }
}
/* Raw scores: count x 1u. */
void forest_predict_raw(const float *rows, size_t count, size_t stride, float *out) {
  forest_answer(rows, count, stride, 0u, 1u * sizeof(float), out);
}
/* What the trainer's predict gives: count x 1u. */
void forest_predict(const float *rows, size_t count, size_t stride, float *out) {
  forest_answer(rows, count, stride, 1u, 1u * sizeof(float), out);
}
/* Labels' indices: count x 1u. */
void forest_predict_class(const float *rows, size_t count, size_t stride, int64_t *out) {
  forest_answer(rows, count, stride, 2u, 1u * sizeof(int64_t), out);
}
/* Leaf numbers: count x 6u. */
void forest_predict_leaf(const float *rows, size_t count, size_t stride, int32_t *out) {
  forest_answer(rows, count, stride, 3u, 6u * sizeof(int32_t), out);
}
/* The same as predict for one row. */
void forest_predict_one(const float *row, float *out) { forest_predict(row, 1u, 4u, out); }
