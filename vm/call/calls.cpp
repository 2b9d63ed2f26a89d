// See forestvm/internal/calls.hpp.
#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "vm/call/call_options.hpp"
#include "vm/call/convert_rows.hpp"
#include "vm/call/number_text.hpp"
#include "vm/call/row_value.hpp"

namespace forestvm {
namespace {

Result<void> check_score_output(OutputKind output) {
  if (output != OutputKind::Class && output != OutputKind::Leaf) return {};
  return usage(
      "predict gives scores and values; labels come from predict_class, leaf numbers from predict_leaf");
}

/// Checks that a program that keeps leaves has virtual ensembles or uncertainty.
Result<void> check_uncertainty(const Program& program, OutputKind output) {
  const auto all = program.uncertainty();
  const std::string where = formatted("output {}", name_of(output));
  if (all.empty())
    return refused(
        where,
        "is for forests that average their trees, and for most of CatBoost's models if their rounds begin "
        "with the first; this one is of {} ({})",
        program.text(StringId::Trainer), program.text(StringId::Objective));
  if (output == OutputKind::Uncertainty || all[0].rule != UncertaintyRule::Trees) return {};
  return refused(
      "output virt-ensembles",
      "the model averages its trees, whose scores are the output trees; the output uncertainty has their "
      "mean and variance");
}

/// Checks that the program has such an output, and that numbers of this type hold it.
Result<void> check_result(const Program& program, OutputKind output, ResultType type) {
  const bool integers = type == ResultType::Int32 || type == ResultType::Int64;
  switch (output) {
    case OutputKind::Raw:
    case OutputKind::Value:
      if (!integers) return {};
      return usage("raw scores and values are float32 or float64: integers would lose their fractions");
    case OutputKind::Contributions:
    case OutputKind::Interactions:
    case OutputKind::ApproxContributions: {
      const std::string_view name = name_of(output);
      const std::string_view option =
          output == OutputKind::ApproxContributions ? "approx_contributions" : name;
      if (integers) return usage("{} are float32 or float64: integers would lose their fractions", name);
      if (output_width(program, output) != 0) return {};
      if (output == OutputKind::Interactions && !program.background().empty())
        return refused("output interactions",
                       "the program has contributions against a background, for which there are no "
                       "interactions: compile the model without a background");
      return refused(formatted("output {}", name),
                     "the program has none: compile the model with --with {} (CompileOptions::{}, "
                     "Python's {}=True)",
                     name, option, option);
    }
    case OutputKind::Quantile:
      if (integers) return usage("quantiles are float32 or float64: integers would lose their fractions");
      if (!program.targets().empty()) return {};
      return refused("output quantile",
                     "the program has none: compile the model with --with quantile and --samples "
                     "(CompileOptions::samples, Python's samples=(X, y))");
    case OutputKind::Trees:
    case OutputKind::Staged:
    case OutputKind::VirtEnsembles:
    case OutputKind::Uncertainty:
      if (integers) return usage("scores are float32 or float64: integers would lose their fractions");
      if (program.round_begins().empty())
        return refused(formatted("output {}", name_of(output)),
                       "the program does not keep each tree's leaf: compile the model with --with {} "
                       "(CompileOptions::keeps_leaves, Python's keep_leaves=True)",
                       name_of(output));
      if (output == OutputKind::VirtEnsembles || output == OutputKind::Uncertainty)
        return check_uncertainty(program, output);
      if (output == OutputKind::Trees || program.meta().rounds != RoundRule::None) return {};
      return refused("output staged", "the model's trees are not rounds of boosting: all of them are needed");
    case OutputKind::Class:
    case OutputKind::Leaf:
      if (!integers) return usage("labels and leaf numbers are int32 or int64: floats would lose digits");
      if (output == OutputKind::Leaf || output_width(program, output) != 0) return {};
      return refused("output class", "the model has no classes: its objective is {}",
                     program.text(StringId::Objective));
  }
  return usage("there is no output {}", static_cast<int>(output));
}

/// Returns the text of a value that no float64 is equal to.
template <class Value>
std::string text_of(Value value) {
  if constexpr (std::is_arithmetic_v<Value>) {
    return number_text(value);
  } else {
    return "";  // each value of such a type is a float64
  }
}

}  // namespace

void deliver(OutputKind output, const void* written, std::size_t count, const Destination& to) {
  if (count == 0) return;
  if (written_type(output, to.type) == to.type)
    std::memcpy(to.out, written, count * bytes_of(to.type));
  else if (to.type == ResultType::Int32)
    std::transform(static_cast<const std::int64_t*>(written),
                   static_cast<const std::int64_t*>(written) + count, to.leaves(),
                   [](std::int64_t label) { return static_cast<std::int32_t>(label); });
  else
    std::copy_n(static_cast<const std::int32_t*>(written), count, to.labels());
}

Result<void> CallPredictor::predict_with(Context& context, const AnyRows& rows, OutputKind output,
                                         ResultType type, const CallOptions& options, void* out) const {
  const auto* const block = block_of(rows);
  if (block != nullptr && is_plain(options) && predict_again(context, *block, output, type, out, SIZE_MAX))
    return {};
  FVM_TRY(check_result(program(), output, type));
  FVM_TRY(check_context(context));
  FVM_ASSIGN(const RowSource source, row_reader().resolve(rows));
  FVM_TRY(check_options(program(), output, source.count(), options));
  if (out == nullptr && source.count() != 0 && output_width(program(), output, options) != 0)
    return no_buffer();
  return run(context, source, output, options, {type, out});
}

Result<void> CallPredictor::check_context(const Context& context) const {
  if (context.owner() == backend_) return {};
  return usage("the context belongs to another backend");
}

Result<void> Predictor::predict(Context& context, const AnyRows& rows, OutputKind output, float* out) const {
  FVM_TRY(check_score_output(output));
  return predict_as(context, rows, output, ResultType::Float32, out);
}

Result<void> Predictor::predict_wide(Context& context, const AnyRows& rows, OutputKind output,
                                     double* out) const {
  FVM_TRY(check_score_output(output));
  return predict_as(context, rows, output, ResultType::Float64, out);
}

Result<void> Predictor::predict_class(Context& context, const AnyRows& rows, std::int64_t* out) const {
  return predict_as(context, rows, OutputKind::Class, ResultType::Int64, out);
}

Result<void> Predictor::predict_leaf(Context& context, const AnyRows& rows, std::int32_t* out) const {
  return predict_as(context, rows, OutputKind::Leaf, ResultType::Int32, out);
}

std::size_t bytes_of(RowType type) {
  return host::with_type(type, [](auto value) { return sizeof(value); });
}

bool is_float32(RowType type) {
  return host::with_type(type, [](auto value) { return host::kIsFloat32<decltype(value)>; });
}

void to_float32(RowType type, const void* values, std::size_t count, float* out) {
  host::convert_rows({}, {values, 1, count, type}, 0, 1, {count, count}, out);
}

void to_float64(RowType type, const void* values, std::size_t count, double* out) {
  host::with_type(type, [&](auto kind) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = host::to_double(host::value_at<decltype(kind)>(values, i));
  });
}

std::size_t first_inexact(RowType type, const void* values, std::size_t count) {
  return host::with_type(type, [&](auto kind) {
    std::size_t i = 0;
    while (i < count && host::is_exact(host::value_at<decltype(kind)>(values, i))) ++i;
    return i;
  });
}

[[gnu::cold]] std::string inexact_text(RowType type, const void* value) {
  return host::with_type(type, [&](auto kind) { return text_of(host::value_at<decltype(kind)>(value, 0)); });
}

[[gnu::cold]] Failure not_exact(std::string_view where, std::string_view number, std::string_view instead) {
  return refused(where,
                 "{} is not a float64 number, and rounded it could go another way in this model, "
                 "which compares in float64; if rounding is meant, {}",
                 number, instead);
}

std::size_t coded_bytes(std::size_t rows, std::size_t columns) {
  if (rows == 0) return 0;
  const std::size_t blocks = (rows - 1) / kCodeRows + 1;
  if (columns != 0 && blocks > (SIZE_MAX - kCodeSlack) / kCodeRows / columns) return SIZE_MAX;
  return code_bytes(rows, columns) + kCodeSlack;
}

Rounds rounds_of(const Program& program, const CallOptions& options) {
  return options.rounds.value_or(Rounds{0, static_cast<std::uint32_t>(program.round_begins().size() - 1)});
}

double ensemble_factor(const Program& program, std::uint32_t rounds_left) {
  const double kept = 1 - static_cast<double>(program.uncertainty()[0].shrinkage);
  return static_cast<double>(static_cast<float>(1 / std::pow(kept, static_cast<double>(rounds_left))));
}

std::uint32_t output_width(const Program& program, OutputKind output, const CallOptions& options) {
  const ProgramMeta& meta = program.meta();
  const std::size_t chosen = options.features.size();
  if (chosen > meta.num_features) return 0;
  const auto terms = static_cast<std::uint32_t>(chosen == 0 ? meta.num_features : chosen) + 1;
  switch (output) {
    case OutputKind::Raw:
      return meta.num_outputs;
    case OutputKind::Value:
      return value_width(meta.transform, meta.pair, meta.num_outputs);
    case OutputKind::Class:
      return label_width(meta.class_rule, meta.num_outputs, meta.group_ends);
    case OutputKind::Leaf:
      return meta.num_trees;
    case OutputKind::Contributions:
      return meta.contributions != 0 ? meta.num_outputs * terms : 0;
    case OutputKind::Trees:
    case OutputKind::Staged:
    case OutputKind::VirtEnsembles:
    case OutputKind::Uncertainty: {
      const std::uint64_t width = width_of_rounds(program, output, options);
      return width <= kMaxContributions ? static_cast<std::uint32_t>(width) : 0;
    }
    case OutputKind::Interactions:
      return meta.contributions > 1 ? meta.num_outputs * terms * terms : 0;
    case OutputKind::ApproxContributions:
      return program.attribution_base().empty() ? 0 : meta.num_outputs * terms;
    case OutputKind::Quantile:
      return program.targets().empty() || options.quantiles.size() > kMaxContributions
                 ? 0
                 : static_cast<std::uint32_t>(options.quantiles.size());
  }
  return 0;
}

Result<void> check_call(const Program& program, OutputKind output, const CallOptions& options) {
  const bool scores = output != OutputKind::Class && output != OutputKind::Leaf;
  FVM_TRY(check_result(program, output, scores ? ResultType::Float64 : ResultType::Int64));
  return check_options(program, output, 0, options);
}

}  // namespace forestvm
