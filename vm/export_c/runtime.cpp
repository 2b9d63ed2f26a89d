// The C functions that exported code calls. Transforms repeat those of core/transform.hpp; tests hold both to
// the same bits.
#include <array>

#include <forestvm/core/sums.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

/// A function of the runtime; `@` stands for the prefix and an underscore.
struct Piece {
  const char* name;
  const char* text;
};

constexpr Piece kPieces[] = {
    {"u128", "typedef struct { uint64_t low, high; } @u128;\n"},
    {"range", "typedef struct { uint32_t begin, end, iteration; } @range;\n"},
    {"iterations", R"(static uint32_t @iterations(@range r, uint32_t step) {
  return r.end == r.begin ? 0u : (r.end - r.begin - 1u) / step + 1u;
}
)"},
    {"chunk", R"(static @range @chunk(@range r, uint32_t step, uint32_t i) {
  @range part;
  part.begin = r.begin + i * step;
  part.end = r.end - part.begin > step ? part.begin + step : r.end;
  part.iteration = i;
  return part;
}
)"},
    {"slice", R"(static @range @slice(@range r, uint32_t from, uint32_t to) {
  const uint32_t size = r.end - r.begin;
  @range part;
  part.begin = r.begin + (from < size ? from : size);
  part.end = r.begin + (to < size ? to : size);
  part.iteration = 0u;
  return part;
}
)"},
    {"add128", R"(static void @add128(@u128 *sum, @u128 more) {
  sum->low += more.low;
  sum->high += more.high + (sum->low < more.low ? 1u : 0u);
}
)"},
    {"round64", R"(static float @round64(uint64_t sum) {
  const int negative = (sum >> 63) != 0u;
  const float nearest = (float)(negative ? ~sum + 1u : sum);
  const float size = (float)((double)nearest * @UNIT);
  return negative ? -size : size;
}
)"},
    {"round128", R"(static float @round128(@u128 sum) {
  const int negative = (sum.high >> 63) != 0u;
  double unit = @UNIT;
  float size;
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
  size = (float)((double)(float)sum.low * unit);
  return negative ? -size : size;
}
)"},
    {"exp", R"(static float @exp(float x) {
  static const double factors[14] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                     1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0,
                                     1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0};
  double scaled, r, sum = 0.0, power, result;
  int32_t n;
  uint64_t bits;
  int i;
  if (x != x) return x;
  if (x > 88.8f) return 1.0f / 0.0f;
  if (x < -104.0f) return 0.0f;
  scaled = (double)x * 1.4426950408889634;
  n = (int32_t)(scaled + (scaled < 0.0 ? -0.5 : 0.5));
  r = ((double)x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  for (i = 0; i < 14; ++i) sum = sum * r + factors[i];
  bits = (uint64_t)(1023 + n) << 52;
  memcpy(&power, &bits, sizeof power);
  result = sum * power;
  return result > 3.4028234663852886e+38 ? 1.0f / 0.0f : (float)result;
}
)"},
    {"argmax", R"(static uint32_t @argmax(const float *scores) {
  uint32_t i, best = 0u;
  for (i = 1u; i < @OUTPUTS; ++i)
    if (scores[i] > scores[best]) best = i;
  return best;
}
)"},
};

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string for_outputs(const std::string& statement) {
  return "  uint32_t i;\n  for (i = 0u; i < @OUTPUTS; ++i) " + statement + "\n";
}

std::string transform_body(Transform transform) {
  switch (transform) {
    case Transform::Identity:
      return "  (void)scores;\n";
    case Transform::Sigmoid:
      return for_outputs("scores[i] = 1.0f / (@exp(-scores[i] > 88.7f ? 88.7f : -scores[i]) + 1.0f);");
    case Transform::Softmax:
      return R"(  uint32_t i;
  float largest = scores[0], total;
  double sum = 0.0;
  for (i = 1u; i < @OUTPUTS; ++i)
    if (scores[i] > largest) largest = scores[i];
  for (i = 0u; i < @OUTPUTS; ++i) {
    scores[i] = @exp(scores[i] - largest);
    sum += (double)scores[i];
  }
  total = (float)sum;
  for (i = 0u; i < @OUTPUTS; ++i) scores[i] /= total;
)";
    case Transform::Argmax:
      return "  scores[0] = (float)@argmax(scores);\n";
    case Transform::Exp:
      return for_outputs("scores[i] = @exp(scores[i]);");
    case Transform::Step:
      return for_outputs("scores[i] = scores[i] > 0.0f ? 1.0f : 0.0f;");
    case Transform::Average:
    case Transform::SignedSquare:
    case Transform::Log1pExp:
    case Transform::Uncertainty:
    case Transform::Anomaly:
    case Transform::AnomalyDecision:
    case Transform::SoftmaxZero:
    case Transform::PlainSigmoid:
    case Transform::RoundedSoftmax:
    case Transform::PlainSoftmax:
    case Transform::CutExp:
    case Transform::PowerExp:
    case Transform::PowerSigmoid:
    case Transform::PowerSoftmax:
      break;  // export_c refuses them
    case Transform::Logistic:
      return R"(  uint32_t i;
  for (i = 0u; i < @OUTPUTS; ++i) {
    const float v = 1.0f / (1.0f + @exp(scores[i] < 0.0f ? scores[i] : -scores[i]));
    scores[i] = scores[i] < 0.0f ? 1.0f - v : v;
  }
)";
    case Transform::Clamp:
      return for_outputs("scores[i] = scores[i] < 0.0f ? 0.0f : scores[i] > 1.0f ? 1.0f : scores[i];");
  }
  return {};
}

std::string label_body(ClassRule rule) {
  switch (rule) {
    case ClassRule::None:
      return "  (void)values; (void)labels;\n";
    case ClassRule::AboveHalf:
    case ClassRule::RawAboveHalf:
      return for_outputs("labels[i] = values[i] > 0.5f;");
    case ClassRule::Positive:
    case ClassRule::RawPositive:
      return for_outputs("labels[i] = values[i] > 0.0f;");
    case ClassRule::RawNotNegative:
      return for_outputs("labels[i] = values[i] >= 0.0f;");
    case ClassRule::Negative:
      return for_outputs("labels[i] = values[i] < 0.0f;");
    case ClassRule::HalfOrMore:
      return for_outputs("labels[i] = values[i] >= 0.5f;");
    case ClassRule::NotPositive:
      return for_outputs("labels[i] = values[i] <= 0.0f;");
    case ClassRule::Argmax:
      return "  labels[0] = (int64_t)@argmax(values);\n";
    case ClassRule::Value:
      return "  labels[0] = (int64_t)values[0];\n";
  }
  return {};
}

/// Returns the C function that says whether a row goes left at a test, by float32 or by the order of the
/// bits.
std::string comparison(const Job& job) {
  if (job.options.thresholds == ExportOptions::Thresholds::Float)
    return R"(static int @left(const float *x, uint32_t word, float threshold) {
  const float value = x[word & 0x3fffffffu];
  return value < threshold || (value != value && (word & 0x40000000u) != 0u);
}
)";
  return R"(/* Bits of float32 as integers of the same order; both zeros are 0. */
static int @left(const float *x, uint32_t word, int32_t threshold) {
  int32_t bits;
  memcpy(&bits, x + (word & 0x3fffffffu), sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) return (word & 0x40000000u) != 0u; /* missing */
  return (bits >= 0 ? bits : INT32_MIN - bits) < threshold;
}
)";
}

}  // namespace

bool has_transform(Transform transform) { return !transform_body(transform).empty(); }

std::string runtime_text(const Job& job, const std::string& body) {
  const ProgramMeta& meta = job.program.meta();
  std::string functions;
  if (body.find(job.name("transform(")) != std::string::npos)
    functions += "static void @transform(float *scores) {\n" + transform_body(meta.transform) + "}\n";
  if (body.find(job.name("label(")) != std::string::npos)
    functions +=
        "static void @label(const float *values, int64_t *labels) {\n" + label_body(meta.class_rule) + "}\n";
  if (body.find(job.name("left(")) != std::string::npos) functions = comparison(job) + functions;
  functions = replaced(functions, "@", job.options.prefix + "_");
  // Later pieces name earlier ones.
  std::array<std::string, std::size(kPieces)> chosen;
  std::string users = functions + body;
  for (std::size_t i = std::size(kPieces); i-- > 0;) {
    if (users.find(job.name(kPieces[i].name)) == std::string::npos) continue;
    chosen[i] = replaced(kPieces[i].text, "@UNIT", "@unit");
    chosen[i] = replaced(chosen[i], "@", job.options.prefix + "_");
    users += chosen[i];
  }
  std::string text;
  for (const std::string& piece : chosen) text += piece;
  text += functions;
  text = replaced(text, job.name("OUTPUTS"), number(meta.num_outputs));
  const double unit = SumScale(meta.sum_unit).unit;
  return replaced(text, job.name("unit"), literal(unit));
}

}  // namespace forestvm::bytecode::export_c
