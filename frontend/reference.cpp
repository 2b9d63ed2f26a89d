// The reference predictor, with which all others are compared: it goes row by row, tree by tree and node by node, in
// the trainer's types and order.
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/reference.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "frontend/derived_columns.hpp"
#include "frontend/reference_walk.hpp"

namespace forestvm {
namespace {

using frontend::is_tiny;
using frontend::leaf_in;

template <class Value>
std::size_t leaf_of(const Model& model, const Tree& tree, std::span<const Value> row) {
  return model.row_type == ScalarType::Float32 ? leaf_in<float>(model, tree, row)
                                               : leaf_in<double>(model, tree, row);
}

/// Returns the output of a linear leaf. A NaN in a feature that it uses gives the leaf's value instead; infinities
/// flow through.
template <class Value>
double linear_output(const Model& model, const Node& node, const LinearLeaf& leaf,
                     std::span<const Value> row) {
  double sum = leaf.constant;
  for (std::size_t i = 0; i < leaf.features.size(); ++i) {
    auto x = static_cast<double>(row[leaf.features[i]]);
    if (std::isnan(x)) return node.value;
    if (model.tiny_is_zero && is_tiny(x)) x = 0;
    const double product = leaf.coefficients[i] * x;
    sum += product;
  }
  return sum;
}

/// Adds a leaf's outputs to the raw scores. Products and sums are rounded separately: this file is built with
/// -ffp-contract=off.
template <class Scalar, class Value>
void add_leaf(const Model& model, const Tree& tree, std::size_t leaf, std::span<const Value> row,
              std::vector<Scalar>& raw) {
  const Node& node = tree.nodes[leaf];
  const auto add = [&](std::size_t output, double value) {
    const Scalar added = static_cast<Scalar>(tree.weight) * static_cast<Scalar>(value);
    raw[output] += added;
  };
  if (!tree.linear_leaves.empty())
    return add(tree.output, linear_output(model, node, tree.linear_leaves[node.payload], row));
  if (tree.leaf_width == 1) return add(tree.output, node.value);
  for (std::size_t k = 0; k < tree.leaf_width; ++k)
    add(k, tree.leaf_vectors[std::size_t{node.payload} * tree.leaf_width + k]);
}

template <class Scalar>
Scalar sigmoid(Scalar x) {
  // Clamps as XGBoost does, whose answer below -88.7 stays a denormal number instead of reaching 0.
  if constexpr (sizeof(Scalar) == sizeof(float)) return 1.0f / (1.0f + std::exp(std::min(-x, 88.7f)));
  return 1 / (1 + std::exp(-x));
}

template <class Scalar>
Scalar logistic(Scalar x) {
  const Scalar v = 1 / (1 + std::exp(-std::abs(x)));
  return x < 0 ? 1 - v : v;
}

/// Returns CatBoost's exponential, which is a power of 2 from a table times a polynomial.
template <class Scalar>
Scalar table_exp(Scalar x) {
  const auto wide = static_cast<double>(x);
  if (std::isnan(x)) return x;
  if (wide <= -708.39641853226408) return 0;
  if (wide >= 709.78271289338397) return std::numeric_limits<Scalar>::infinity();
  const double whole = std::nearbyint(wide * (2048 / std::log(2.0)));
  const double exponent = std::floor(whole / 2048);
  const double t = whole * (std::log(2.0) / 2048) - wide;
  const double polynomial = (3.0000000027955394 - t) * (t * t) * 0.16666666685227835064 - t + 1.0;
  return static_cast<Scalar>(polynomial *
                             std::ldexp(std::exp2(whole / 2048 - exponent), static_cast<int>(exponent)));
}

/// Returns the weighted median: the first half of the scores are values, the second half their weights. See
/// Transform::WeightedMedian.
template <class Scalar>
Scalar weighted_median(const std::vector<Scalar>& raw) {
  const std::size_t count = raw.size() / 2;
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return raw[a] < raw[b]; });
  std::vector<Scalar> sums;
  sums.reserve(count);
  for (const std::size_t i : order) sums.push_back(raw[count + i] + (sums.empty() ? 0 : sums.back()));
  const auto chosen = std::find_if(sums.begin(), sums.end() - 1,
                                   [&](Scalar sum) { return sum >= Scalar{0.5} * sums.back(); });
  return raw[order[static_cast<std::size_t>(chosen - sums.begin())]];
}

/// Returns the softmax of the scores; with `keep_zeros` scores of 0 stay 0. `exponential` is the function to take for
/// exp.
template <class Scalar, class Exponential>
std::vector<Scalar> softmax(const std::vector<Scalar>& raw, bool keep_zeros, Exponential exponential) {
  const Scalar largest = *std::max_element(raw.begin(), raw.end());
  std::vector<Scalar> out;
  double sum = 0;
  for (const Scalar x : raw) {
    out.push_back(keep_zeros && x == 0 ? 0 : exponential(x - largest));
    sum += static_cast<double>(out.back());
  }
  for (Scalar& x : out)
    if (sum != 0) x /= static_cast<Scalar>(sum);
  return out;
}

/// Returns Treelite's softmax, which keeps the largest score and the exponentials in float32.
template <class Scalar>
std::vector<Scalar> rounded_softmax(const std::vector<Scalar>& raw) {
  auto largest = static_cast<float>(raw[0]);
  for (const Scalar x : raw)
    if (x > static_cast<Scalar>(largest)) largest = static_cast<float>(x);
  std::vector<Scalar> out;
  double sum = 0;
  for (const Scalar x : raw) {
    const auto power = static_cast<float>(std::exp(x - static_cast<Scalar>(largest)));
    out.push_back(static_cast<Scalar>(power));
    sum += static_cast<double>(power);
  }
  for (Scalar& x : out) x /= static_cast<Scalar>(static_cast<float>(sum));
  return out;
}

/// Returns YDF's softmax, which subtracts nothing.
template <class Scalar>
std::vector<Scalar> plain_softmax(std::vector<Scalar> raw) {
  Scalar sum = 0;
  for (Scalar& x : raw) sum += x = std::exp(x);
  const Scalar factor = 1 / sum;
  for (Scalar& x : raw) x *= factor;
  return raw;
}

/// Returns the power of the base whose logarithm is `slope`, as JPMML computes it for float32.
template <class Scalar>
Scalar power_exp(Scalar x, double slope) {
  return static_cast<Scalar>(std::exp(slope * static_cast<double>(x)));
}

template <class Scalar>
std::vector<Scalar> power_softmax(std::vector<Scalar> raw, double slope) {
  const Scalar largest = *std::max_element(raw.begin(), raw.end());
  Scalar sum = 0;
  for (Scalar& x : raw) sum += x = power_exp(x - largest, slope);
  for (Scalar& x : raw) x /= sum;
  return raw;
}

template <class Scalar>  // NOLINTNEXTLINE(readability-function-size): one case for each transform
std::vector<Scalar> value_of(Transform transform, TransformParameters parameters,
                             const std::vector<Scalar>& raw) {
  std::vector<Scalar> out = raw;
  for (Scalar& x : out) x /= static_cast<Scalar>(parameters.divisor);
  const auto slope = static_cast<Scalar>(parameters.slope);
  switch (transform) {
    case Transform::Identity:
    case Transform::Average:
      break;
    case Transform::Sigmoid:
      for (Scalar& x : out) x = sigmoid(slope * x);
      break;
    case Transform::Exp:
      for (Scalar& x : out) x = std::exp(x);
      break;
    case Transform::Step:
      for (Scalar& x : out) x = x > 0 ? Scalar{1} : Scalar{0};
      break;
    case Transform::SignedSquare:
      for (Scalar& x : out) x = static_cast<Scalar>((x > 0) - (x < 0)) * x * x;
      break;
    case Transform::Log1pExp:
      for (Scalar& x : out) x = std::log1p(std::exp(x));
      break;
    case Transform::Softmax:
      for (Scalar& x : out) x /= slope;
      return softmax(out, false, [](Scalar x) { return std::exp(x); });
    case Transform::SoftmaxZero:
      return softmax(out, true, [](Scalar x) { return std::exp(x); });
    case Transform::Logistic:
      for (Scalar& x : out) x = logistic(x);
      break;
    case Transform::Uncertainty:
      out[1] = table_exp(2 * out[1]);
      break;
    case Transform::Anomaly:
      for (Scalar& x : out) x = std::exp2(-(x / slope));
      break;
    case Transform::AnomalyDecision:
      for (Scalar& x : out) x = -std::exp2(-(x / slope)) - static_cast<Scalar>(parameters.offset);
      break;
    case Transform::PlainSigmoid:
      for (Scalar& x : out) x = 1 / (1 + std::exp(-(slope * x)));
      break;
    case Transform::RoundedSoftmax:
      return rounded_softmax(out);
    case Transform::PlainSoftmax:
      return plain_softmax(out);
    case Transform::CutExp:
      for (Scalar& x : out) x = std::exp(std::clamp(x, Scalar{-19}, Scalar{19}));
      break;
    case Transform::PowerExp:
      for (Scalar& x : out) x = power_exp(x, parameters.slope);
      break;
    case Transform::PowerSigmoid:
      for (Scalar& x : out) x = 1 / (1 + power_exp(-x, parameters.slope));
      break;
    case Transform::PowerSoftmax:
      return power_softmax(out, parameters.slope);
    case Transform::Clamp:
      for (Scalar& x : out) x = std::clamp(x, Scalar{0}, Scalar{1});
      break;
    case Transform::TableExp:
      for (Scalar& x : out) x = table_exp(x);
      break;
    case Transform::TableSoftmax:
      return softmax(out, false, [](Scalar x) { return table_exp(x); });
    case Transform::WeightedMedian:
      return {weighted_median(out)};
    case Transform::Sorted:
      std::stable_sort(out.begin(), out.end(),
                       [](Scalar a, Scalar b) { return a < b || (std::isnan(b) && !std::isnan(a)); });
      break;
    case Transform::SoftplusSteps:
      for (std::size_t i = 1; i < out.size(); ++i)
        out[i] = out[i - 1] + (std::max(out[i], Scalar{0}) + std::log1p(std::exp(-std::abs(out[i]))) +
                               static_cast<Scalar>(1e-6));
      break;
    case Transform::Argmax:
      return {static_cast<Scalar>(std::max_element(out.begin(), out.end()) - out.begin())};
  }
  return out;
}

template <class Scalar>
std::vector<std::int64_t> labels_of(ClassRule rule, TransformParameters parameters,
                                    const std::vector<Scalar>& raw, const std::vector<Scalar>& value) {
  std::vector<std::int64_t> out;
  std::vector<Scalar> quotients = raw;
  for (Scalar& x : quotients) x /= static_cast<Scalar>(parameters.divisor);
  const auto each = [&](const std::vector<Scalar>& scores, auto is_one) {
    for (const Scalar x : scores) out.push_back(is_one(x) ? 1 : 0);
  };
  switch (rule) {
    case ClassRule::None:
      break;
    case ClassRule::AboveHalf:
      each(value, [](Scalar x) { return x > Scalar{0.5}; });
      break;
    case ClassRule::Positive:
      each(value, [](Scalar x) { return x > 0; });
      break;
    case ClassRule::Negative:
      each(value, [](Scalar x) { return x < 0; });
      break;
    case ClassRule::HalfOrMore:
      each(value, [](Scalar x) { return x >= Scalar{0.5}; });
      break;
    case ClassRule::NotPositive:
      each(value, [](Scalar x) { return x <= 0; });
      break;
    case ClassRule::RawPositive:
      each(raw, [](Scalar x) { return x > 0; });
      break;
    case ClassRule::RawNotNegative:
      each(raw, [](Scalar x) { return x >= 0; });
      break;
    case ClassRule::RawAboveHalf:
      each(raw, [](Scalar x) { return x > Scalar{0.5}; });
      break;
    case ClassRule::RawAboveOffset:
      each(raw, [&](Scalar x) { return x > static_cast<Scalar>(parameters.offset); });
      break;
    case ClassRule::Argmax:
      out.push_back(std::max_element(value.begin(), value.end()) - value.begin());
      break;
    case ClassRule::ArgmaxOfEach:
      for (std::size_t i = 0, begin = 0; i < value.size(); ++i) {
        if ((parameters.group_ends >> i & 1) == 0) continue;
        const auto first = value.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last = value.begin() + static_cast<std::ptrdiff_t>(i + 1);
        out.push_back(std::max_element(first, last) - value.begin());
        begin = i + 1;
      }
      break;
    case ClassRule::RawArgmax:
      out.push_back(std::max_element(quotients.begin(), quotients.end()) - quotients.begin());
      break;
    case ClassRule::Value:
      for (const Scalar x : value) out.push_back(static_cast<std::int64_t>(x));
      break;
  }
  return out;
}

template <class Scalar>
std::vector<Scalar> paired(Pair pair, const std::vector<Scalar>& value) {
  switch (pair) {
    case Pair::None:
      break;
    case Pair::Complement:
      return {1 - value[0], value[0]};
    case Pair::Negation:
      return {-value[0], value[0]};
  }
  return value;
}

template <class Scalar, class Value>
Reference predict(const Model& model, std::span<const Value> rows, std::size_t row_count,
                  const ReferenceOptions& options) {
  const std::size_t last = std::min(options.last_tree, model.trees.size());
  const std::size_t first = std::min(options.first_tree, last);
  Reference out;
  out.rows = row_count;
  out.raw_width = model.num_outputs;
  const std::size_t values = value_width(model.transform, Pair::None, model.num_outputs);
  out.value_width = model.pair == Pair::None ? values : 2;
  const TransformParameters parameters = parameters_of(model, last - first);
  out.label_width =
      labels_of(model.class_rule, parameters, std::vector<Scalar>(out.raw_width), std::vector<Scalar>(values))
          .size();
  out.leaf_width = options.leaves ? last - first : 0;
  const auto columns = static_cast<std::size_t>(num_columns(model));
  for (std::size_t r = 0; r < row_count; ++r) {
    const std::span<const Value> row = rows.subspan(r * columns, columns);
    std::vector<Scalar> raw;
    for (const double margin : model.base)
      raw.push_back(model.base_last ? Scalar{0} : static_cast<Scalar>(margin));
    for (std::size_t t = first; t < last; ++t) {
      const Tree& tree = model.trees[t];
      const std::size_t leaf = leaf_of(model, tree, row);
      if (options.leaves) out.leaf.push_back(leaf_number(tree, leaf));
      add_leaf(model, tree, leaf, row, raw);
    }
    for (std::size_t i = 0; model.base_last && i < raw.size(); ++i) {
      raw[i] *= static_cast<Scalar>(model.scale);
      raw[i] = static_cast<Scalar>(static_cast<double>(raw[i]) + model.base[i]);
    }
    const std::vector<Scalar> one = value_of(model.transform, parameters, raw);
    const std::vector<std::int64_t> labels = labels_of(model.class_rule, parameters, raw, one);
    const std::vector<Scalar> value = paired(model.pair, one);
    out.raw.insert(out.raw.end(), raw.begin(), raw.end());
    out.value.insert(out.value.end(), value.begin(), value.end());
    out.label.insert(out.label.end(), labels.begin(), labels.end());
  }
  return out;
}

template <class Value>
Reference predict_as(const Model& model, std::span<const Value> rows, std::size_t row_count,
                     const ReferenceOptions& options) {
  return model.score_type == ScalarType::Float32 ? predict<float>(model, rows, row_count, options)
                                                 : predict<double>(model, rows, row_count, options);
}

template <class Value>
Result<Reference> checked(const Model& model, std::span<const Value> rows, std::size_t row_count,
                          const ReferenceOptions& options) {
  std::size_t cells = 0;
  if (__builtin_mul_overflow(row_count, std::size_t{model.num_features}, &cells) || cells != rows.size())
    return refused("rows", "{} values for {} rows of {} features", rows.size(), row_count,
                   model.num_features);
  if (num_columns(model) == model.num_features) return predict_as(model, rows, row_count, options);
  FVM_ASSIGN(const std::vector<double> wide,
             frontend::with_derived_columns(model, std::vector<double>(rows.begin(), rows.end()), row_count,
                                            options.hashed_rows));
  return predict_as(model, std::span(wide), row_count, options);
}

}  // namespace

Result<Reference> reference_predict(const Model& model, std::span<const float> rows, std::size_t row_count,
                                    const ReferenceOptions& options) {
  return checked(model, rows, row_count, options);
}

Result<Reference> reference_predict(const Model& model, std::span<const double> rows, std::size_t row_count,
                                    const ReferenceOptions& options) {
  return checked(model, rows, row_count, options);
}

}  // namespace forestvm
