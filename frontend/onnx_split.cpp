// See onnx_split.hpp.
#include "frontend/onnx_split.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

namespace forestvm::frontend {
namespace {

/// A number that goes to a node of its own, and this node.
struct Point {
  double value;
  std::uint32_t target;
};

bool tests_equality(OnnxMode mode) {
  return mode == OnnxMode::Equal || mode == OnnxMode::NotEqual || mode == OnnxMode::Member;
}

/// Adds a cut, and a part above it with this target, unless the last part has the same target.
void add_part(OnnxSplit& split, Cut cut, std::uint32_t target) {
  if (split.targets.back() == target) return;
  split.cuts.push_back(cut);
  split.targets.push_back(target);
}

void add_points(std::span<const double> values, std::uint32_t target, std::vector<Point>& points) {
  for (const double value : values)
    if (!std::isnan(value)) points.push_back({value, target});
}

std::span<const double> members_of(const OnnxForest& forest, std::uint32_t node) {
  const auto set = static_cast<std::size_t>(
      std::lower_bound(forest.member_nodes.begin(), forest.member_nodes.end(), node) -
      forest.member_nodes.begin());
  const std::uint32_t begin = forest.member_begins[set];
  return std::span(forest.members).subspan(begin, forest.member_begins[set + 1] - begin);
}

/// Reads a chain of tests for equality. For each number, the first test that it passes decides.
void split_by_points(const OnnxForest& forest, std::uint32_t at, OnnxSplit& split) {
  std::vector<Point> points;
  std::optional<std::uint32_t> nan_target;
  const std::uint32_t column = forest.nodes[at].column;
  while (tests_equality(forest.nodes[at].mode) && forest.nodes[at].column == column) {
    const OnnxNode& node = forest.nodes[at];
    const bool not_equal = node.mode == OnnxMode::NotEqual;
    const std::span<const double> values =
        node.mode == OnnxMode::Member ? members_of(forest, at) : std::span(&node.value, 1);
    add_points(values, not_equal ? node.no : node.yes, points);
    if (node.nan_yes && !not_equal && !nan_target) nan_target = node.yes;
    at = not_equal ? node.yes : node.no;
    split.nodes += 1 + values.size();
  }
  split.nan_target = nan_target.value_or(at);
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.value < b.value; });
  split.targets = {at};
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i != 0 && points[i].value == points[i - 1].value) continue;
    add_part(split, {points[i].value, false}, points[i].target);
    add_part(split, {points[i].value, true}, at);
  }
}

/// Reads a test by order: <, <=, > or >=.
void split_by_order(const OnnxNode& node, OnnxSplit& split) {
  const bool below = node.mode == OnnxMode::Less || node.mode == OnnxMode::LessEqual;
  const bool inclusive = node.mode == OnnxMode::LessEqual || node.mode == OnnxMode::Greater;
  split.nodes = 1;
  split.nan_target = node.nan_yes ? node.yes : node.no;
  split.targets = {node.no};
  if (std::isnan(node.value)) return;  // no number passes
  split.targets = {below ? node.yes : node.no};
  add_part(split, {node.value, inclusive}, below ? node.no : node.yes);
}

/// The integer type of the same size as a type of numbers.
template <class Number>
using Bits = std::conditional_t<sizeof(Number) == 4, std::int32_t, std::int64_t>;

/// Returns the place of a number in the ascending order of all numbers of its type, from -inf to inf. Both zeros have
/// the place 0.
template <class Number>
std::int64_t order_of(Number x) {
  const auto bits = std::bit_cast<Bits<Number>>(x);
  return bits >= 0 ? bits : std::int64_t{std::numeric_limits<Bits<Number>>::min()} - bits;
}

template <class Number>
Number number_at(std::int64_t order) {
  const auto size = std::bit_cast<Number>(static_cast<Bits<Number>>(order < 0 ? -order : order));
  return order < 0 ? -size : size;
}

/// Returns the cut of the feature that corresponds to a cut of the column. The feature's numbers, which are of the type
/// Number, lie below it if the column's numbers lie below `cut` or, if the column falls with the feature, above `cut`.
template <class Number>
Cut cut_of_feature(const OnnxColumn& column, const Cut& cut, bool falls) {
  const auto is_low = [&](Number x) {
    const double y = column.apply(static_cast<double>(x));
    return (cut.after ? y <= cut.number : y < cut.number) != falls;
  };
  constexpr Number kInf = std::numeric_limits<Number>::infinity();
  if (!is_low(-kInf)) return kLowestCut;
  std::int64_t low = order_of(-kInf), high = order_of(kInf) + 1;
  while (low + 1 < high) {
    const std::int64_t middle = std::midpoint(low, high);
    (is_low(number_at<Number>(middle)) ? low : high) = middle;
  }
  return {static_cast<double>(number_at<Number>(low)), true};
}

std::uint32_t target_of(const OnnxSplit& split, double y) {
  std::size_t part = 0;
  while (part < split.cuts.size() &&
         (split.cuts[part].after ? y > split.cuts[part].number : y >= split.cuts[part].number))
    ++part;
  return split.targets[part];
}

/// Turns cuts of a column into cuts of its feature, whose numbers are of the type `row_type`.
void move_to_feature(const OnnxColumn& column, ScalarType row_type, OnnxSplit& split) {
  const double nan = column.apply(std::numeric_limits<double>::quiet_NaN());
  if (!std::isnan(nan)) split.nan_target = target_of(split, nan);
  const bool falls = column.falls();
  for (Cut& cut : split.cuts)
    cut = row_type == ScalarType::Float32 ? cut_of_feature<float>(column, cut, falls)
                                          : cut_of_feature<double>(column, cut, falls);
  if (!falls) return;
  std::reverse(split.cuts.begin(), split.cuts.end());
  std::reverse(split.targets.begin(), split.targets.end());
}

}  // namespace

void keep_between(OnnxSplit& split, const Cut& lower, const Cut& upper) {
  const auto first =
      std::find_if(split.cuts.begin(), split.cuts.end(), [&](const Cut& c) { return lower < c; });
  auto last = first;
  while (last != split.cuts.end() && *last < upper) ++last;
  std::vector<Cut> cuts;
  cuts.swap(split.cuts);
  const std::vector<std::uint32_t> targets = std::exchange(split.targets, {});
  auto part = static_cast<std::size_t>(first - cuts.begin());
  split.targets.push_back(targets[part]);
  for (auto cut = first; cut != last; ++cut) {
    ++part;
    // Equal cuts have no number between them.
    if (!split.cuts.empty() && !(split.cuts.back() < *cut)) {
      split.targets.back() = targets[part];
      if (split.targets[split.targets.size() - 2] == targets[part]) {
        split.targets.pop_back();
        split.cuts.pop_back();
      }
    } else {
      add_part(split, *cut, targets[part]);
    }
  }
}

OnnxSplit onnx_split(const OnnxForest& forest, const OnnxColumns& columns, std::uint32_t node) {
  OnnxSplit split;
  if (tests_equality(forest.nodes[node].mode)) {
    split_by_points(forest, node, split);
  } else {
    split_by_order(forest.nodes[node], split);
  }
  const OnnxColumn column = columns.at(forest.nodes[node].column);
  split.feature = column.feature;
  if (column.changed() || (columns.type == OnnxType::Double && columns.row_type == ScalarType::Float32))
    move_to_feature(column, columns.row_type, split);
  // A threshold that is infinite must be inclusive.
  const double largest = columns.row_type == ScalarType::Float32
                             ? static_cast<double>(std::numeric_limits<float>::max())
                             : std::numeric_limits<double>::max();
  for (Cut& cut : split.cuts)
    if (cut.number == kHighestCut.number && !cut.after) cut = {largest, true};
  keep_between(split, kLowestCut, kHighestCut);
  return split;
}

}  // namespace forestvm::frontend
