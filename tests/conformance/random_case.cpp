// See random_case.hpp.
#include "random_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>

#include <forestvm/backend.hpp>
#include <forestvm/rounds.hpp>

#include <forestvm/internal/reference.hpp>
#include "random_forest.hpp"
#include "support/exact_sum.hpp"
#include "support/floats.hpp"

namespace forestvm::test {
namespace {

/// The answers of a predictor for all rows.
struct Answer {
  std::vector<float> raw, value;
  std::vector<std::int64_t> label;
  std::vector<std::int32_t> leaf;
};

Result<std::unique_ptr<Predictor>> loaded(const Program& program, const RandomCase& c) {
  if (program.mapped()) return emulator_backend(program, c.emulator);
  return host_backend(program, {.threads = c.threads, .target = c.target});
}

/// Returns the rows, with values between them that no answer may depend on.
std::vector<float> padded_rows(const RandomCase& c) {
  const std::size_t width = c.model.num_features, stride = width + c.padding;
  std::vector<float> padded(c.row_count() * stride, -1e30f);
  for (std::size_t row = 0; row < c.row_count(); ++row)
    std::copy_n(c.rows.begin() + static_cast<std::ptrdiff_t>(row * width), width,
                padded.begin() + static_cast<std::ptrdiff_t>(row * stride));
  return padded;
}

Result<Answer> predicted(const Program& program, const RandomCase& c, std::size_t batch) {
  const std::vector<float> padded = padded_rows(c);
  FVM_ASSIGN(const auto predictor, loaded(program, c));
  const auto context = predictor->make_context();
  const std::uint32_t raw = output_width(program, OutputKind::Raw),
                      value = output_width(program, OutputKind::Value),
                      label = output_width(program, OutputKind::Class);
  Answer answer;
  answer.raw.assign(c.row_count() * raw, -12345.0f);
  answer.value.assign(c.row_count() * value, -12345.0f);
  answer.label.assign(c.row_count() * label, -12345);
  const std::size_t trees = c.model.trees.size();
  answer.leaf.assign(c.row_count() * trees, -12345);
  // Leaves another call's sums and codes in the scratch memory; no answer may depend on them.
  std::vector<float> left(c.row_count() * raw);
  const RowBlock all{padded.data(), c.row_count(), c.model.num_features + c.padding};
  FVM_TRY(predictor->predict(*context, all, OutputKind::Raw, left.data()));
  for (std::size_t begin = 0; begin < c.row_count(); begin += batch) {
    RowBlock rows;
    rows.stride = c.model.num_features + c.padding;
    rows.data = padded.data() + begin * rows.stride;
    rows.count = std::min(batch, c.row_count() - begin);
    FVM_TRY(predictor->predict(*context, rows, OutputKind::Raw, answer.raw.data() + begin * raw));
    FVM_TRY(predictor->predict(*context, rows, OutputKind::Value, answer.value.data() + begin * value));
    if (trees != 0) FVM_TRY(predictor->predict_leaf(*context, rows, answer.leaf.data() + begin * trees));
    if (label != 0) FVM_TRY(predictor->predict_class(*context, rows, answer.label.data() + begin * label));
  }
  return answer;
}

std::string differs(const char* what, std::size_t i, double expected, double actual) {
  char text[160];
  std::snprintf(text, sizeof text, "%s number %zu: expected %.9g (%a), got %.9g (%a)", what, i, expected,
                expected, actual, actual);
  return text;
}

/// Returns the raw scores under the reproducible contract, from the leaves that the reference predictor
/// finds.
std::vector<float> exact_scores(const RandomCase& c, const Reference& expected) {
  std::vector<float> scores;
  for (std::size_t row = 0; row < c.row_count(); ++row) {
    std::vector<support::ExactSum> sums(c.model.num_outputs);
    const bool scaled = c.model.scale != 1;
    for (std::size_t k = 0; k < sums.size() && !scaled; ++k) sums[k].add(static_cast<float>(c.model.base[k]));
    for (std::size_t t = 0; t < c.model.trees.size(); ++t) {
      const Tree& tree = c.model.trees[t];
      const auto leaf = static_cast<std::size_t>(expected.leaf[row * c.model.trees.size() + t]);
      sums[tree.output].add(tree.weight * static_cast<float>(tree.nodes[leaf].value));
    }
    for (std::size_t k = 0; k < sums.size(); ++k) {
      scores.push_back(sums[k].rounded());
      if (!scaled) continue;
      scores.back() *= static_cast<float>(c.model.scale);
      scores.back() += static_cast<float>(c.model.base[k]);
    }
  }
  return scores;
}

std::vector<float> floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

/// Returns whether a and b may be 1 - p and 1 - q for numbers p and q that are at most 2 ulps apart.
bool is_close_complement(const Model& model, float a, float b) {
  const bool complements = model.pair == Pair::Complement || model.transform == Transform::Logistic;
  return complements && std::abs(a - b) <= 0x1p-22f;
}

/// Returns what is wrong with an answer; empty if it is right. `in_order`: sums were added in the model's
/// order.
std::string compared(const RandomCase& c, const Reference& expected, const Answer& answer, bool in_order) {
  for (std::size_t i = 0; i < answer.leaf.size(); ++i)
    if (answer.leaf[i] != expected.leaf[i]) return differs("leaf", i, expected.leaf[i], answer.leaf[i]);
  const bool exact = c.options.contract == Contract::Reproducible && !in_order;
  const std::vector<float> wanted = exact ? exact_scores(c, expected) : floats(expected.raw);
  const double slack = in_order || exact || c.exact_sums
                           ? 0.0
                           : largest_sum(c.model) * static_cast<double>(c.model.trees.size() + 2) * 0x1p-23;
  for (std::size_t i = 0; i < answer.raw.size(); ++i) {
    const bool right = slack == 0.0 ? support::same_bits(wanted[i], answer.raw[i])
                                    : std::abs(expected.raw[i] - static_cast<double>(answer.raw[i])) <= slack;
    if (!right)
      return differs("raw score", i, static_cast<double>(wanted[i]), static_cast<double>(answer.raw[i]));
  }
  if (slack != 0.0 || exact) return {};
  bool same_values = true;
  for (std::size_t i = 0; i < answer.value.size(); ++i) {
    const auto value = static_cast<float>(expected.value[i]);
    same_values = same_values && support::same_bits(value, answer.value[i]);
    if (support::ulps(value, answer.value[i]) > 2 && !is_close_complement(c.model, value, answer.value[i]))
      return differs("value", i, expected.value[i], static_cast<double>(answer.value[i]));
  }
  if (!same_values) return {};  // a label may depend on the last bit
  for (std::size_t i = 0; i < answer.label.size(); ++i)
    if (answer.label[i] != expected.label[i])
      return differs("label", i, static_cast<double>(expected.label[i]),
                     static_cast<double>(answer.label[i]));
  return {};
}

/// Checks that rows which are encoded first get the same raw scores and leaves, if some plan takes encoded
/// rows. Another plan may add in another order.
std::string encoded_differ(const Program& program, const RandomCase& c, std::size_t batch,
                           const Answer& expected, bool in_order) {
  const auto predictor = loaded(program, c);
  const auto context = (*predictor)->make_context();
  const std::uint32_t raw = output_width(program, OutputKind::Raw);
  const std::size_t columns = (*predictor)->coded_columns(), trees = c.model.trees.size();
  for (std::size_t begin = 0; begin < c.row_count(); begin += batch) {
    const std::size_t count = std::min(batch, c.row_count() - begin);
    const RowBlock rows{c.rows.data() + begin * c.model.num_features, count, c.model.num_features};
    std::vector<std::uint8_t> codes(coded_bytes(count, columns));
    const auto coded = (*predictor)->encode(*context, rows, codes);
    if (!coded.ok()) return coded.error().code == ErrorCode::Refused ? "" : coded.error().text();
    std::vector<float> scores(count * raw);
    std::vector<std::int32_t> leaves(count * trees);
    for (const auto& done : {(*predictor)->predict(*context, *coded, OutputKind::Raw, scores.data()),
                             (*predictor)->predict_leaf(*context, *coded, leaves.data())})
      if (!done.ok()) return done.error().text();
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i] != expected.leaf[begin * trees + i])
        return differs("encoded: leaf", begin * trees + i, expected.leaf[begin * trees + i], leaves[i]);
    for (std::size_t i = 0; i < scores.size() && in_order; ++i)
      if (!support::same_bits(scores[i], expected.raw[begin * raw + i]))
        return differs("encoded: raw score", begin * raw + i,
                       static_cast<double>(expected.raw[begin * raw + i]), static_cast<double>(scores[i]));
  }
  return {};
}

/// Returns an output of a predictor for the first rows of a case, in calls of up to `batch` rows.
Result<std::vector<double>> output_of(const Predictor& predictor, const RandomCase& c, std::size_t rows,
                                      std::size_t batch, OutputKind output, const CallOptions& call) {
  const auto context = predictor.make_context();
  const std::size_t width = output_width(predictor.program(), output, call), features = c.model.num_features;
  std::vector<double> out(rows * width, -12345.0);
  for (std::size_t begin = 0; begin < rows; begin += batch) {
    const RowBlock block{c.rows.data() + begin * features, std::min(batch, rows - begin), features};
    FVM_TRY(predictor.predict_with(*context, block, output, ResultType::Float64, call,
                                   out.data() + begin * width));
  }
  return out;
}

std::string compared(const char* what, const std::vector<double>& expected,
                     const Result<std::vector<double>>& got) {
  if (!got.ok()) return std::string(what) + ": " + got.error().text();
  if (got->size() != expected.size()) return std::string(what) + ": another number of them";
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!support::same_bits(expected[i], (*got)[i])) return differs(what, i, expected[i], (*got)[i]);
  return {};
}

/// Returns what each tree adds to each row's scores, from the leaves that the reference predictor finds.
std::vector<double> outputs_of_trees(const RandomCase& c, const Reference& expected) {
  const bool wide = c.model.score_type == ScalarType::Float64;
  std::vector<double> out;
  for (std::size_t row = 0; row < c.row_count(); ++row)
    for (std::size_t t = 0; t < c.model.trees.size(); ++t) {
      const Tree& tree = c.model.trees[t];
      const Node& leaf = tree.nodes[static_cast<std::size_t>(expected.leaf[row * c.model.trees.size() + t])];
      for (std::uint32_t k = 0; k < tree.leaf_width; ++k) {
        const double value = tree.leaf_width == 1
                                 ? leaf.value
                                 : tree.leaf_vectors[std::size_t{leaf.payload} * tree.leaf_width + k];
        out.push_back(wide ? static_cast<double>(tree.weight) * value
                           : static_cast<double>(tree.weight * static_cast<float>(value)));
      }
    }
  return out;
}

/// Returns the raw scores after every few rounds, row by row, from the reference predictor on models of these rounds.
Result<std::vector<double>> stages_of(const RandomCase& c, std::uint32_t every) {
  const auto rounds = static_cast<std::uint32_t>(c.model.trees.size());
  const std::size_t outputs = c.model.num_outputs, stages = (rounds + every - 1) / every;
  std::vector<double> out(c.row_count() * stages * outputs);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    Model model = c.model;
    FVM_TRY(keep_rounds(model, {0, std::min(rounds, static_cast<std::uint32_t>(stage + 1) * every)}));
    FVM_ASSIGN(const Reference part, reference_predict(model, c.rows, c.row_count(), {}));
    for (std::size_t row = 0; row < c.row_count(); ++row)
      for (std::size_t k = 0; k < outputs; ++k)
        out[(row * stages + stage) * outputs + k] = part.raw[row * outputs + k];
  }
  return out;
}

/// Checks the outputs beside scores, labels and leaves that the case asks for: those of trees and stages against the
/// reference, and contributions, whose bits depend on no schedule, against the program of the default schedule.
std::string parts_differ(const Program& program, const RandomCase& c, const Reference& expected,
                         std::size_t batch) {
  const auto predictor = loaded(program, c);
  if (c.options.keeps_leaves && !c.model.trees.empty()) {
    CallOptions call;
    call.every = static_cast<std::uint32_t>((c.model.trees.size() + 2) / 3);
    std::string wrong = compared("tree", outputs_of_trees(c, expected),
                                 output_of(**predictor, c, c.row_count(), batch, OutputKind::Trees, call));
    if (!wrong.empty()) return wrong;
    const bool has_stages = c.model.divisor == 1;
    const auto stages = has_stages ? stages_of(c, call.every) : std::vector<double>();
    if (!stages.ok()) return "stages of the reference: " + stages.error().text();
    if (has_stages)
      wrong = compared("stage", *stages,
                       output_of(**predictor, c, c.row_count(), batch, OutputKind::Staged, call));
    if (!wrong.empty()) return wrong;
  }
  if (!c.options.contributions && !c.options.approx_contributions) return {};
  const auto plain = compile(c.model, Schedule(), c.options);
  if (!plain.ok()) return "contributions: " + plain.error().text();
  const auto judge = host_backend(plain->program, {.threads = 1});
  const std::size_t width = std::size_t{c.model.num_outputs} * (c.model.num_features + 1);
  for (const OutputKind output :
       {OutputKind::Contributions, OutputKind::Interactions, OutputKind::ApproxContributions}) {
    if (output_width(program, output) == 0) continue;
    const bool pairs = output == OutputKind::Interactions;
    const std::size_t rows = std::min<std::size_t>(c.row_count(), pairs || width > 10'000 ? 3 : 70);
    const auto wanted = output_of(**judge, c, rows, rows, output, {});
    if (!wanted.ok()) return "contributions: " + wanted.error().text();
    std::string wrong = compared("contribution", *wanted, output_of(**predictor, c, rows, batch, output, {}));
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace

Result<Program> compiled(const RandomCase& c) {
  FVM_ASSIGN(const Compiled done, compile(c.model, c.schedule, c.options));
  if (done.program.mapped()) FVM_TRY(loaded(done.program, c));
  return done.program;
}

std::string failure_of(const RandomCase& c) {
  const Result<Program> program = compiled(c);
  if (!program.ok()) return {};
  const auto expected = reference_predict(c.model, c.rows, c.row_count(), {});
  if (!expected.ok()) return "the reference: " + expected.error().text();
  for (const std::size_t batch : c.batches) {
    const Result<Answer> answer = predicted(*program, c, batch);
    if (!answer.ok()) return answer.error().text();
    const bool in_order = program->meta().sums_in_model_order != 0;
    const std::string wrong = compared(c, *expected, *answer, in_order);
    if (!wrong.empty()) return "batch " + std::to_string(batch) + ": " + wrong;
    const std::string differ = encoded_differ(*program, c, batch, *answer, in_order);
    if (!differ.empty()) return "batch " + std::to_string(batch) + ": " + differ;
    const std::string parts = parts_differ(*program, c, *expected, batch);
    if (!parts.empty()) return "batch " + std::to_string(batch) + ": " + parts;
  }
  return {};
}

}  // namespace forestvm::test
