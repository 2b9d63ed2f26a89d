// The C functions that turn scores into values, and values into labels. They repeat core/transform.hpp; tests check
// that both give the same bits. Numbers without a suffix are exact in the type of the scores: the program decides it.
#include <bit>

#include <forestvm/internal/formatted.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

std::string for_outputs(const std::string& statement) {
  return formatted("  for (uint32_t i = 0u; i < @OUTPUTS; ++i) {}\n", statement);
}

/// The numbers with which scores are combined, as C text.
struct Parameters {
  std::string steep_score;  ///< The score times the slope.
  std::string flat_score;   ///< The score divided by the slope.
  std::string divisor, offset;
  std::string wide_slope;  ///< The slope as a float64.

  Parameters(const Job& job, ScalarType score) {
    const ProgramMeta& meta = job.program.meta();
    divisor = job.calls.averages ? "divisor" : literal(score, meta.divisor);
    offset = literal(score, meta.offset);
    wide_slope = literal(ScalarType::Float64, meta.slope);
    const std::string slope = literal(score, meta.slope);
    steep_score = meta.slope == 1 ? "scores[i]" : slope + " * scores[i]";
    flat_score = meta.slope == 1 ? "scores[i]" : "scores[i] / " + slope;
  }

  /// Returns the text of power_exp of an expression.
  std::string power_of(const std::string& x) const {
    return formatted("(@SCORE)@exp_f64({} * (double)({}))", wide_slope, x);
  }
};

constexpr const char* kLargest = R"(  @SCORE largest = scores[0];
  for (uint32_t i = 1u; i < @OUTPUTS; ++i)
    if (scores[i] > largest) largest = scores[i];
)";

/// Returns the softmax of scores whose largest is known, with the call `power` for exp(scores[i] - largest).
std::string softmax(const std::string& power) {
  return "  double sum = 0.0;\n  for (uint32_t i = 0u; i < @OUTPUTS; ++i) {\n    scores[i] = " + power +
         R"(;
    sum += (double)scores[i];
  }
  const @SCORE total = (@SCORE)sum;
  for (uint32_t i = 0u; i < @OUTPUTS; ++i) scores[i] /= total;
)";
}

constexpr const char* kSoftmaxZero = R"(  double sum = 0.0;
  for (uint32_t i = 0u; i < @OUTPUTS; ++i) {
    scores[i] = scores[i] == 0 ? 0 : @exp_@BITS(scores[i] - largest);
    sum += (double)scores[i];
  }
  const @SCORE total = (@SCORE)sum;
  for (uint32_t i = 0u; i < @OUTPUTS && total != 0; ++i) scores[i] /= total;
)";

constexpr const char* kRoundedSoftmax = R"(  float largest = (float)scores[0];
  double sum = 0.0;
  for (uint32_t i = 1u; i < @OUTPUTS; ++i)
    if (scores[i] > (@SCORE)largest) largest = (float)scores[i];
  for (uint32_t i = 0u; i < @OUTPUTS; ++i) {
    const float power = (float)@exp_@BITS(scores[i] - (@SCORE)largest);
    sum += (double)power;
    scores[i] = (@SCORE)power;
  }
  const @SCORE total = (@SCORE)(float)sum;
  for (uint32_t i = 0u; i < @OUTPUTS; ++i) scores[i] /= total;
)";

constexpr const char* kPlainSoftmax = R"(  @SCORE sum = 0;
  for (uint32_t i = 0u; i < @OUTPUTS; ++i) {
    scores[i] = @exp_@BITS(scores[i]);
    sum += scores[i];
  }
  const @SCORE factor = 1 / sum;
  for (uint32_t i = 0u; i < @OUTPUTS; ++i) scores[i] *= factor;
)";

constexpr const char* kLogistic = R"(  for (uint32_t i = 0u; i < @OUTPUTS; ++i) {
    const @SCORE v = 1 / (1 + @exp_@BITS(scores[i] < 0 ? scores[i] : -scores[i]));
    scores[i] = scores[i] < 0 ? 1 - v : v;
  }
)";

constexpr const char* kSoftplusSteps = R"(  for (uint32_t i = 1u; i < @OUTPUTS; ++i) {
    const @SCORE x = scores[i], rest = (@SCORE)@log1p_f64((double)@exp_@BITS(x > 0 ? -x : x));
    scores[i] = scores[i - 1u] + ((x > 0 ? x + rest : rest) + (@SCORE)1e-6);
  }
)";

std::string body_of(const ProgramMeta& meta, const Parameters& parameters) {
  const std::string anomaly = formatted("(@SCORE)@exp2_f64((double)-({}))", parameters.flat_score);
  switch (meta.transform) {
    case Transform::Identity:
    case Transform::Average:
      return "";
    case Transform::Sigmoid:
      return for_outputs(formatted("scores[i] = @sigmoid_@BITS({});", parameters.steep_score));
    case Transform::Softmax:
      return (meta.slope == 1 ? "" : for_outputs(formatted("scores[i] = {};", parameters.flat_score))) +
             kLargest + softmax("@exp_@BITS(scores[i] - largest)");
    case Transform::Argmax:
      return "  scores[0] = (@SCORE)@argmax_@BITS(scores, 1);\n";
    case Transform::Exp:
      return for_outputs("scores[i] = @exp_@BITS(scores[i]);");
    case Transform::Step:
      return for_outputs("scores[i] = (@SCORE)(scores[i] > 0);");
    case Transform::SignedSquare:
      return for_outputs("scores[i] = (@SCORE)((scores[i] > 0) - (scores[i] < 0)) * scores[i] * scores[i];");
    case Transform::Log1pExp:
      return for_outputs("scores[i] = (@SCORE)@log1p_f64((double)@exp_@BITS(scores[i]));");
    case Transform::Logistic:
      return kLogistic;
    case Transform::Uncertainty:
      return "  scores[1] = (@SCORE)@table_exp((double)(2 * scores[1]));\n";
    case Transform::Anomaly:
      return for_outputs(formatted("scores[i] = {};", anomaly));
    case Transform::AnomalyDecision:
      return for_outputs(formatted("scores[i] = -{} - {};", anomaly, parameters.offset));
    case Transform::Clamp:
      return for_outputs("scores[i] = scores[i] < 0 ? 0 : scores[i] > 1 ? 1 : scores[i];");
    case Transform::SoftmaxZero:
      return std::string(kLargest) + kSoftmaxZero;
    case Transform::PlainSigmoid:
      return for_outputs(formatted("scores[i] = 1 / (1 + @exp_@BITS(-({})));", parameters.steep_score));
    case Transform::RoundedSoftmax:
      return kRoundedSoftmax;
    case Transform::PlainSoftmax:
      return kPlainSoftmax;
    case Transform::CutExp:
      return for_outputs("scores[i] = @exp_@BITS(scores[i] < -19 ? -19 : scores[i] > 19 ? 19 : scores[i]);");
    case Transform::PowerExp:
      return for_outputs(formatted("scores[i] = {};", parameters.power_of("scores[i]")));
    case Transform::PowerSigmoid:
      return for_outputs(formatted("scores[i] = 1 / (1 + {});", parameters.power_of("-scores[i]")));
    case Transform::PowerSoftmax:
      return formatted(
          "{}  @SCORE sum = 0;\n  for (uint32_t i = 0u; i < @OUTPUTS; ++i) {\n    scores[i] = {};\n    sum += scores[i];\n  }\n{}",
          kLargest, parameters.power_of("scores[i] - largest"), for_outputs("scores[i] /= sum;"));
    case Transform::TableExp:
      return for_outputs("scores[i] = (@SCORE)@table_exp((double)scores[i]);");
    case Transform::TableSoftmax:
      return kLargest + softmax("(@SCORE)@table_exp((double)(scores[i] - largest))");
    case Transform::WeightedMedian:
      return "  scores[0] = @weighted_median_@BITS(scores);\n";
    case Transform::Sorted:
      return "  @sort_scores_@BITS(scores, scores, @OUTPUTS);\n";
    case Transform::SoftplusSteps:
      return kSoftplusSteps;
  }
  return {};
}

/// Returns the statements that find the first largest value of each group of outputs.
std::string groups_label(const ProgramMeta& meta) {
  std::string text = "  uint32_t i;\n";
  for (std::uint32_t begin = 0, label = 0; begin < meta.num_outputs; ++label) {
    const std::uint32_t last = begin + static_cast<std::uint32_t>(std::countr_zero(meta.group_ends >> begin));
    const std::string to = formatted("labels[{}]", label);
    text += formatted(
        "  {} = {};\n  for (i = {}u; i <= {}u; ++i)\n    if (values[i] > values[{}]) {} = (int64_t)i;\n", to,
        begin, begin, last, to, to);
    begin = last + 1;
  }
  return text;
}

}  // namespace

std::string transform_body(const Job& job, ScalarType score) {
  const ProgramMeta& meta = job.program.meta();
  const Parameters parameters(job, score);
  const bool divides = job.calls.averages || meta.divisor != 1;
  const std::string divided =
      divides ? for_outputs(formatted("scores[i] /= {};", parameters.divisor)) : std::string();
  const std::string body = divided + body_of(meta, parameters);
  return body.empty() ? "  (void)scores;\n" : body;
}

bool divides_for_label(const Job& job) {
  return job.calls.averages && job.program.meta().class_rule == ClassRule::RawArgmax;
}

std::string label_body(const Job& job, ScalarType score) {
  const ProgramMeta& meta = job.program.meta();
  switch (meta.class_rule) {
    case ClassRule::None:
      return "  (void)values; (void)labels;\n";
    case ClassRule::AboveHalf:
    case ClassRule::RawAboveHalf:
      return for_outputs("labels[i] = values[i] > (@SCORE)0.5;");
    case ClassRule::Positive:
    case ClassRule::RawPositive:
      return for_outputs("labels[i] = values[i] > 0;");
    case ClassRule::RawNotNegative:
      return for_outputs("labels[i] = values[i] >= 0;");
    case ClassRule::Negative:
      return for_outputs("labels[i] = values[i] < 0;");
    case ClassRule::RawAboveOffset:
      return for_outputs(formatted("labels[i] = values[i] > {};", literal(score, meta.offset)));
    case ClassRule::HalfOrMore:
      return for_outputs("labels[i] = values[i] >= (@SCORE)0.5;");
    case ClassRule::NotPositive:
      return for_outputs("labels[i] = values[i] <= 0;");
    case ClassRule::Argmax:
      return "  labels[0] = (int64_t)@argmax_@BITS(values, 1);\n";
    case ClassRule::ArgmaxOfEach:
      return groups_label(meta);
    case ClassRule::RawArgmax:
      return formatted("  labels[0] = (int64_t)@argmax_@BITS(values, {});\n", Parameters(job, score).divisor);
    case ClassRule::Value:
      return "  labels[0] = (int64_t)values[0];\n";
  }
  return {};
}

}  // namespace forestvm::bytecode::export_c
