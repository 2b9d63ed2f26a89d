// The C functions that exported code calls. Their arithmetic repeats that of core/transform.hpp and core/sums.hpp;
// tests check that both give the same bits.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/internal/formatted.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

/// A function of the runtime, written for in_file.
struct Piece {
  const char* name;
  const char* text;
};

constexpr Piece kPieces[] = {
    {"u128", "typedef struct { uint64_t low, high; } @u128;\n"},
    {"range", "typedef struct { uint32_t begin, end, iteration; } @range;\n"},
    {"iterations(", R"(static uint32_t @iterations(@range r, uint32_t step) {
  return r.end == r.begin ? 0u : (r.end - r.begin - 1u) / step + 1u;
}
)"},
    {"chunk(", R"(static @range @chunk(@range r, uint32_t step, uint32_t i) {
  @range part;
  part.begin = r.begin + i * step;
  part.end = r.end - part.begin > step ? part.begin + step : r.end;
  part.iteration = i;
  return part;
}
)"},
    {"slice(", R"(static @range @slice(@range r, uint32_t from, uint32_t to) {
  const uint32_t size = r.end - r.begin;
  @range part;
  part.begin = r.begin + (from < size ? from : size);
  part.end = r.begin + (to < size ? to : size);
  part.iteration = 0u;
  return part;
}
)"},
    {"add128(", R"(static void @add128(@u128 *sum, @u128 more) {
  sum->low += more.low;
  sum->high += more.high + (sum->low < more.low ? 1u : 0u);
}
)"},
    {"power_of_two(", R"(static double @power_of_two(int32_t exponent) {
  const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return power;
}
)"},
    {"exp_f32(", R"(static float @exp_f32(float x) {
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
  result = sum * @power_of_two(n);
  return result > 3.4028234663852886e+38 ? 1.0f / 0.0f : (float)result;
}
)"},
    {"scaled_exp(", R"(static double @scaled_exp(double high, double low, int32_t n) {
  static const double factors[13] = {1.0 / 87178291200.0, 1.0 / 6227020800.0, 1.0 / 479001600.0,
                                     1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
                                     1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5};
  const double r = high - low;
  double tail = 0.0, rest, sum, total, lost;
  int i;
  for (i = 0; i < 13; ++i) tail = tail * r + factors[i];
  rest = tail * (r * r) - low;
  sum = high + rest;
  total = 1.0 + sum;
  lost = ((1.0 - total) + sum) + ((high - sum) + rest);
  return (total + lost) * @power_of_two(n / 2) * @power_of_two(n - n / 2);
}
)"},
    {"exp_f64(", R"(static double @exp_f64(double x) {
  double scaled;
  int32_t n;
  if (x != x) return x;
  if (x > 709.79) return 1.0 / 0.0;
  if (x < -745.14) return 0.0;
  scaled = x * 1.4426950408889634;
  n = (int32_t)((scaled + 6755399441055744.0) - 6755399441055744.0);
  return @scaled_exp(x - n * 6.93147180369123816490e-01, n * 1.90821492927058770002e-10, n);
}
)"},
    {"exp2_f64(", R"(static double @exp2_f64(double x) {
  double fraction;
  int32_t n;
  if (x != x) return x;
  if (x >= 1024.0) return 1.0 / 0.0;
  if (x < -1075.0) return 0.0;
  n = (int32_t)((x + 6755399441055744.0) - 6755399441055744.0);
  fraction = x - n;
  return @scaled_exp(fraction * 6.93147180369123816490e-01, -(fraction * 1.90821492927058770002e-10), n);
}
)"},
    {"scaled_log(", R"(static double @scaled_log(double x, double rest, int32_t power) {
  uint64_t bits;
  int32_t n, k;
  double m, f, s, series = 0.0, half;
  memcpy(&bits, &x, sizeof bits);
  n = (int32_t)(bits >> 52) - 1023 + power;
  bits = (bits & 0xfffffffffffffull) | 0x3ff0000000000000ull;
  memcpy(&m, &bits, sizeof m);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++n;
  }
  f = m - 1.0;
  s = f / (2.0 + f);
  for (k = 11; k > 0; --k) series = (series + 2.0 / (2 * k + 1)) * (s * s);
  half = 0.5 * f * f;
  return n * 6.93147180369123816490e-01 -
         ((half - (s * (half + series) + (n * 1.90821492927058770002e-10 + rest))) - f);
}
)"},
    {"log1p_f64(", R"(static double @log1p_f64(double y) {
  double u, lost;
  if (!(y <= 1.7976931348623157e+308)) return y;
  u = 1.0 + y;
  lost = y < 1.0 ? y - (u - 1.0) : 1.0 - (u - y);
  return @scaled_log(u, lost / u, 0);
}
)"},
    {"entropy_term(", R"(static double @entropy_term(double chance) {
  if (!(chance > 0)) return 0;
  return -chance * (chance >= 2.2250738585072014e-308 ? @scaled_log(chance, 0, 0) : @scaled_log(chance * 0x1p54, 0, -54));
}
)"},
    {"fixed_product(", R"(static uint64_t @fixed_product(uint64_t a, uint64_t b) {
  const uint64_t low = 0xffffffffu, high_low = (a >> 32) * (b & low), low_high = (a & low) * (b >> 32);
  const uint64_t middle = ((a & low) * (b & low) >> 32) + (high_low & low) + (low_high & low);
  const uint64_t high = (a >> 32) * (b >> 32) + (high_low >> 32) + (low_high >> 32) + (middle >> 32);
  return (high << 1) + ((middle >> 31 & 1u) + (middle >> 30 & 1u));
}
)"},
    {"table_exp(", R"(static double @table_exp(double x) {
  static const uint64_t factors[11] = {
      0x800b179c82028fd1ull, 0x8016302f17467628ull, 0x802c6436d0e04f51ull, 0x8058d7d2d5e5f6b1ull,
      0x80b1ed4fd999ab6cull, 0x8164d1f3bc030773ull, 0x82cd8698ac2ba1d7ull, 0x85aac367cc487b15ull,
      0x8b95c1e3ea8bd6e7ull, 0x9837f0518db8a96full, 0xb504f333f9de6484ull};
  const double rounder = 6755399441055744.0;
  uint64_t product = (uint64_t)1 << 63, bits;
  double whole, rest, factor, power;
  int32_t n, i;
  if (x != x) return x;
  if (x <= -708.39641853226408) return 0.0;
  if (x >= 709.78271289338397) return 1.0 / 0.0;
  whole = (x * (2048 / 0.6931471805599453) + rounder) - rounder;
  n = (int32_t)whole;
  rest = whole * (0.6931471805599453 / 2048) - x;
  factor = (3.0000000027955394 - rest) * (rest * rest) * 0.16666666685227835064 - rest + 1.0;
  for (i = 0; i < 11; ++i)
    if (((uint32_t)n >> i & 1u) != 0u) product = @fixed_product(product, factors[i]);
  bits = ((uint64_t)(1022 + (n - (int32_t)((uint32_t)n & 2047u)) / 2048) << 52) + ((product + 1024u) >> 11);
  memcpy(&power, &bits, sizeof power);
  return factor * power;
}
)"},
    {"sigmoid_f32(", R"(static float @sigmoid_f32(float x) {
  return 1.0f / (@exp_f32(-x > 88.7f ? 88.7f : -x) + 1.0f);
}
)"},
    {"sigmoid_f64(", R"(static double @sigmoid_f64(double x) { return 1.0 / (1.0 + @exp_f64(-x)); }
)"},
};

/// Functions for sums and scores that have the type @SCORE; their names end with @BITS.
constexpr Piece kScorePieces[] = {
    {"round64_", R"(static @SCORE @round64_@BITS(uint64_t sum) {
  const int negative = (sum >> 63) != 0u;
  const @SCORE nearest = (@SCORE)(negative ? ~sum + 1u : sum);
  const @SCORE size = (@SCORE)((double)nearest * @UNIT);
  return negative ? -size : size;
}
)"},
    {"round128_", R"(static @SCORE @round128_@BITS(@u128 sum) {
  const int negative = (sum.high >> 63) != 0u;
  double unit = @UNIT;
  @SCORE size;
  if (negative) {
    sum.high = ~sum.high + (sum.low == 0u ? 1u : 0u);
    sum.low = ~sum.low + 1u;
  }
  while (sum.high != 0u) {
    const uint64_t lost = sum.low & 1u;
    sum.low = (sum.low >> 1 | sum.high << 63) | lost;
    sum.high >>= 1;
    unit *= 2.0;
  }
  size = (@SCORE)((double)(@SCORE)sum.low * unit);
  return negative ? -size : size;
}
)"},
    {"sort_scores_", R"(static void @sort_scores_@BITS(@SCORE *scores, @SCORE *beside, uint32_t count) {
  uint32_t gap, i, to;
  for (gap = count; gap > 1u;) {
    gap = gap < 5u ? 1u : (uint32_t)((uint64_t)gap * 5u / 11u);
    for (i = gap; i < count; ++i) {
      const @SCORE score = scores[i], number = beside[i];
      for (to = i; to >= gap && (scores[to - gap] > score || (scores[to - gap] != scores[to - gap] && score == score));
           to -= gap) {
        scores[to] = scores[to - gap];
        beside[to] = beside[to - gap];
      }
      scores[to] = score;
      beside[to] = number;
    }
  }
}
)"},
    {"weighted_median_", R"(static @SCORE @weighted_median_@BITS(@SCORE *scores) {
  const uint32_t count = @OUTPUTS / 2u;
  @SCORE *const weights = scores + count;
  uint32_t i, chosen = 0u;
  @sort_scores_@BITS(scores, weights, count);
  for (i = 1u; i < count; ++i) weights[i] += weights[i - 1u];
  while (chosen + 1u < count && !(weights[chosen] >= (@SCORE)0.5 * weights[count - 1u])) ++chosen;
  return scores[chosen];
}
)"},
    {"argmax_", R"(static uint32_t @argmax_@BITS(const @SCORE *scores, @SCORE divisor) {
  uint32_t i, best = 0u;
  for (i = 1u; i < @OUTPUTS; ++i)
    if (scores[i] / divisor > scores[best] / divisor) best = i;
  return best;
}
)"},
};

constexpr const char* kWithBranch = "value < threshold || (value != value && (word & 0x40000000u) != 0u)";
constexpr const char* kWithoutBranch = "(value < threshold) | ((value != value) & (int)(word >> 30 & 1u))";

/// Returns the C function that says whether a row goes left at a test, by the values of rows or by the order of their
/// bits. `sides` is the C expression that compares values.
std::string comparison(const Job& job, const char* sides) {
  const std::string value =
      formatted("  const uint32_t column = word & 0x3fffffffu;\n  const @ROW value = {};\n",
                column_value(job, "column"));
  if (job.options.thresholds == ExportOptions::Thresholds::Float)
    return formatted("static int @left(const @ROW *x, uint32_t word, @ROW threshold) {\n{}  return {};\n}\n",
                     value, sides);
  const bool wide = job.program.meta().row_type == ScalarType::Float64;
  const std::string integer = wide ? "int64_t" : "int32_t", least = wide ? "INT64_MIN" : "INT32_MIN";
  const std::string sizes = wide ? "0x7fffffffffffffffll" : "0x7fffffff";
  const std::string infinity = wide ? "0x7ff0000000000000ll" : "0x7f800000";
  return "/* Bits of a number as an integer of the same order; both zeros are 0. */\nstatic int @left(const @ROW *x, "
         "uint32_t word, " +
         integer + " threshold) {\n" + value + "  " + integer +
         " bits;\n  memcpy(&bits, &value, sizeof bits);\n  if ((bits & " + sizes + ") > " + infinity +
         ") return (word & 0x40000000u) != 0u; /* missing */\n  return (bits >= 0 ? bits : " + least +
         " - bits) < threshold;\n}\n";
}

}  // namespace

std::string runtime_text(const Job& job, const std::string& body) {
  // Names and texts of all functions. Later ones call earlier ones.
  std::vector<std::pair<std::string, std::string>> pieces;
  for (const Piece& piece : kPieces) pieces.emplace_back(piece.name, in_file(job, piece.text));
  // Processors foresee the sides of walks, and go on before they are known. Where nothing but numbers depends on sides,
  // wrong guesses would cost more than a branch saves.
  pieces.emplace_back("left(", in_file(job, comparison(job, kWithBranch)));
  pieces.emplace_back("left_bit(",
                      in_file(job, replaced(comparison(job, kWithoutBranch), {{"@left(", "@left_bit("}})));
  for (const ScalarType score : {ScalarType::Float32, ScalarType::Float64}) {
    const auto add = [&](const std::string& name, const std::string& text) {
      pieces.emplace_back(in_file(job, name + "@BITS(", score), in_file(job, text, score));
    };
    for (const Piece& piece : kScorePieces) add(piece.name, piece.text);
    add("transform_", formatted("static void @transform_@BITS(@SCORE *scores{}) {\n{}}\n",
                                job.calls.averages ? ", @SCORE divisor" : "", transform_body(job, score)));
    add("label_", formatted("static void @label_@BITS(const @SCORE *values, int64_t *labels{}) {\n{}}\n",
                            divides_for_label(job) ? ", @SCORE divisor" : "", label_body(job, score)));
  }
  std::reverse(pieces.begin(), pieces.end());
  std::string text, users = body;
  for (const auto& [name, function] : pieces) {
    if (users.find(job.name(name)) == std::string::npos) continue;
    users += function;
    text.insert(0, function);
  }
  return text;
}

}  // namespace forestvm::bytecode::export_c
