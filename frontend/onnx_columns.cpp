// See onnx_columns.hpp.
#include "frontend/onnx_columns.hpp"

#include <algorithm>
#include <cmath>

namespace forestvm::frontend {
namespace {

double pick(const std::vector<double>& numbers, std::uint32_t index) {
  return numbers[numbers.size() == 1 ? 0 : index];
}

/// Returns what a step makes of x, with arithmetic in the type Number.
template <class Number>
Number stepped(const OnnxStep& step, std::uint32_t index, Number x) {
  const Number first = step.first.empty() ? 0 : static_cast<Number>(pick(step.first, index));
  const Number second = step.second.empty() ? 0 : static_cast<Number>(pick(step.second, index));
  switch (step.kind) {
    case OnnxStepKind::Scale:
      return (x - first) * second;
    case OnnxStepKind::Replace:
      return std::isnan(x) ? first : x;
    case OnnxStepKind::Add:
      return x + first;
    case OnnxStepKind::Subtract:
      return x - first;
    case OnnxStepKind::Multiply:
      return x * first;
    case OnnxStepKind::Divide:
      return x / first;
    case OnnxStepKind::Clip:
      return std::isnan(x) ? x : std::min(std::max(x, first), second);
    case OnnxStepKind::Round:
      break;
  }
  return x;
}

}  // namespace

bool folds(const OnnxStep& step) {
  const auto has_zero = [](const std::vector<double>& numbers) {
    return std::find(numbers.begin(), numbers.end(), 0.0) != numbers.end();
  };
  if (step.kind == OnnxStepKind::Scale) return !has_zero(step.second);
  if (step.kind == OnnxStepKind::Multiply || step.kind == OnnxStepKind::Divide) return !has_zero(step.first);
  return step.kind != OnnxStepKind::Replace || step.second.empty();
}

double OnnxColumn::apply(double x) const {
  for (const OnnxStep& step : segment->steps)
    x = step.type == ScalarType::Float32 ? static_cast<double>(stepped(step, index, static_cast<float>(x)))
                                         : stepped(step, index, x);
  return x;
}

bool OnnxColumn::falls() const {
  bool falls = false;
  for (const OnnxStep& step : segment->steps) {
    const bool by_first = step.kind == OnnxStepKind::Multiply || step.kind == OnnxStepKind::Divide;
    if (by_first && pick(step.first, index) < 0) falls = !falls;
    if (step.kind == OnnxStepKind::Scale && pick(step.second, index) < 0) falls = !falls;
  }
  return falls;
}

OnnxColumn OnnxColumns::at(std::uint32_t column) const {
  const auto after = std::upper_bound(segments.begin(), segments.end(), column,
                                      [](std::uint32_t c, const OnnxSegment& s) { return c < s.column; });
  const OnnxSegment& segment = *(after - 1);
  return {segment.feature + (column - segment.column), &segment, column - segment.column};
}

void OnnxColumns::add_step(const OnnxStep& step) {
  const auto part = [](const std::vector<double>& numbers, const OnnxSegment& segment) {
    if (numbers.size() <= 1) return numbers;
    const auto first = numbers.begin() + segment.column;
    return std::vector<double>(first, first + segment.count);
  };
  for (OnnxSegment& segment : segments)
    segment.steps.push_back({step.kind, step.type, part(step.first, segment), part(step.second, segment)});
}

void OnnxColumns::round_to_float32() {
  bool changed = false;
  for (const OnnxSegment& segment : segments) changed = changed || !segment.steps.empty();
  if (changed)
    add_step({OnnxStepKind::Round, ScalarType::Float32, {}, {}});
  else
    row_type = ScalarType::Float32;
}

bool OnnxColumns::all_float32() const {
  for (const OnnxSegment& segment : segments)
    for (const OnnxStep& step : segment.steps)
      if (step.type != ScalarType::Float32) return false;
  return row_type == ScalarType::Float32;
}

std::uint32_t OnnxComputed::add(ColumnKind kind, std::vector<ColumnTerm> terms) {
  columns_.push_back({kind, std::move(terms)});
  return num_features_ + static_cast<std::uint32_t>(columns_.size() - 1);
}

/// Adds a column for a step. The column of a Scale does for Add and Multiply too: x + a is (x - -a) * 1, and x * a is
/// (x - 0) * a, with the same bits.
std::uint32_t OnnxComputed::add_step(std::uint32_t feature, const OnnxStep& step, std::uint32_t index) {
  const auto a = static_cast<float>(pick(step.first, index));
  const auto b = step.second.empty() ? 0 : static_cast<float>(pick(step.second, index));
  switch (step.kind) {
    case OnnxStepKind::Scale:
      return add(ColumnKind::Scaled, {{feature, a, b}});
    case OnnxStepKind::Replace:
      return add(ColumnKind::Replaced, {{feature, step.second.empty() ? std::nanf("") : b, a}});
    case OnnxStepKind::Add:
      return add(ColumnKind::Scaled, {{feature, -a, 1}});
    case OnnxStepKind::Subtract:
      return add(ColumnKind::Scaled, {{feature, a, 1}});
    case OnnxStepKind::Multiply:
      return add(ColumnKind::Scaled, {{feature, 0, a}});
    case OnnxStepKind::Divide:
      return add(ColumnKind::Divided, {{feature, a, 0}});
    case OnnxStepKind::Clip:
      return add(ColumnKind::Clipped, {{feature, a, b}});
    case OnnxStepKind::Round:
      break;
  }
  return feature;
}

/// Returns features or computed columns that hold the numbers of the columns.
std::vector<std::uint32_t> OnnxComputed::features_of(const OnnxColumns& columns) {
  std::vector<std::uint32_t> features;
  for (const OnnxSegment& segment : columns.segments)
    for (std::uint32_t i = 0; i < segment.count; ++i) {
      features.push_back(segment.feature + i);
      for (const OnnxStep& step : segment.steps) features.back() = add_step(features.back(), step, i);
    }
  return features;
}

OnnxColumns OnnxComputed::after(const OnnxColumns& columns, const OnnxStep& step) {
  const std::vector<std::uint32_t> features = features_of(columns);
  OnnxColumns result = columns;
  result.segments = {{0, columns.width, num_features_ + static_cast<std::uint32_t>(columns_.size()), {}}};
  for (std::uint32_t i = 0; i < columns.width; ++i) add_step(features[i], step, i);
  return result;
}

OnnxColumns OnnxComputed::shares(const OnnxColumns& columns, ColumnKind whole, ColumnKind share) {
  const std::vector<std::uint32_t> features = features_of(columns);
  std::vector<ColumnTerm> terms;
  terms.reserve(features.size());
  for (const std::uint32_t feature : features) terms.push_back({feature, 0, 0});
  const std::uint32_t sum = add(whole, std::move(terms));
  OnnxColumns result = columns;
  result.type = OnnxType::Float;
  result.segments = {{0, columns.width, sum + 1, {}}};
  for (const std::uint32_t feature : features) add(share, {{feature, 0, 0}, {sum, 0, 0}});
  return result;
}

}  // namespace forestvm::frontend
