// See dependence_pieces.hpp.
#include "frontend/dependence_pieces.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "frontend/reference_walk.hpp"

namespace forestvm::frontend {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// Returns the next number after `x` in the type in which the model compares, upwards or downwards.
double beside(const Model& model, double x, bool above) {
  const double to = above ? kUnbounded : -kUnbounded;
  if (model.row_type == ScalarType::Float64) return std::nextafter(x, to);
  return static_cast<double>(std::nextafter(static_cast<float>(x), static_cast<float>(to)));
}

double rounded(const Model& model, double x) {
  return model.row_type == ScalarType::Float64 ? x : static_cast<double>(static_cast<float>(x));
}

bool value_goes_left(const Model& model, const FeatureTest& test, double x) {
  return model.row_type == ScalarType::Float64 ? number_goes_left<double>(model, *test.tree, *test.node, x)
                                               : number_goes_left<float>(model, *test.tree, *test.node, x);
}

/// Returns the least number that does not pass the comparison of a split, which smaller numbers pass.
double cut_of(const Model& model, const Node& node) {
  const double threshold = rounded(model, node.threshold);
  return node.kind == NodeKind::Less || std::isinf(threshold) ? threshold : beside(model, threshold, true);
}

FeaturePoints category_points(const std::vector<FeatureTest>& tests) {
  std::set<std::uint32_t> codes;
  for (const FeatureTest& test : tests)
    if (test.node->kind == NodeKind::Category) {
      const CategorySet& set = test.tree->category_sets[test.node->payload];
      codes.insert(set.codes.begin(), set.codes.end());
    }
  FeaturePoints points{true, {}};
  for (const std::uint32_t code : codes) points.pieces.push_back({double(code), double(code), 0});
  // A code that no split names: the one after the largest, or if that is over the limit, the least.
  std::uint32_t other = 0;
  if (!codes.empty() && *codes.rbegin() + 1 < kMaxCategories)
    other = *codes.rbegin() + 1;
  else
    while (codes.contains(other)) ++other;
  points.pieces.push_back({double(other), double(other), 0});
  return points;
}

}  // namespace

PointRuns both_of(const PointRuns& one, const PointRuns& other) {
  PointRuns both;
  for (std::size_t i = 0, j = 0; i < one.size() && j < other.size();) {
    const std::size_t begin = std::max(one[i].first, other[j].first);
    const std::size_t end = std::min(one[i].second, other[j].second);
    if (begin < end) both.emplace_back(begin, end);
    one[i].second < other[j].second ? ++i : ++j;
  }
  return both;
}

PointRuns others_of(const PointRuns& runs, std::size_t count) {
  PointRuns others;
  std::size_t at = 0;
  for (const auto& [begin, end] : runs) {
    if (at < begin) others.emplace_back(at, begin);
    at = end;
  }
  if (at < count) others.emplace_back(at, count);
  return others;
}

PointRuns FeaturePoints::left_of(const Model& model, const FeatureTest& test) const {
  PointRuns runs;
  const auto add = [&](std::size_t begin, std::size_t end) {
    if (begin == end) return;
    if (!runs.empty() && runs.back().second == begin)
      runs.back().second = end;
    else
      runs.emplace_back(begin, end);
  };
  const auto add_if_left = [&](std::size_t i) {
    if (value_goes_left(model, test, pieces[i].at)) add(i, i + 1);
  };
  const auto first_from = [&](double x) {
    return static_cast<std::size_t>(
        std::lower_bound(pieces.begin(), pieces.end(), x,
                         [](const DependencePiece& piece, double from) { return piece.from < from; }) -
        pieces.begin());
  };
  if (categories) {
    for (std::size_t i = 0; i < pieces.size(); ++i) add_if_left(i);
  } else {
    // Tests the pieces of numbers that count as 0 or as missing one by one, because there are few.
    const double tiny = rounded(model, kTiny);
    const std::size_t zeros = first_from(-tiny), end = first_from(beside(model, tiny, true));
    const bool special = test.node->missing == Missing::Zero || model.tiny_is_zero;
    const std::size_t passed = first_from(cut_of(model, *test.node));
    if (special) {
      add(0, std::min(passed, zeros));
      for (std::size_t i = zeros; i < end; ++i) add_if_left(i);
      if (passed > end) add(end, passed);
    } else {
      add(0, passed);
    }
  }
  if (value_goes_left(model, test, std::numeric_limits<double>::quiet_NaN())) add(pieces.size(), count());
  return runs;
}

FeaturePoints points_of(const Model& model, const std::vector<FeatureTest>& tests) {
  const auto is_category = [](const FeatureTest& test) { return test.node->kind == NodeKind::Category; };
  if (std::any_of(tests.begin(), tests.end(), is_category)) return category_points(tests);
  std::set<double> cuts, thresholds;
  const auto cut = [&](double x) {
    if (std::isfinite(x)) cuts.insert(x);
  };
  for (const FeatureTest& test : tests) {
    cut(cut_of(model, *test.node));
    thresholds.insert(rounded(model, test.node->threshold));
    if (test.node->missing != Missing::Zero && !model.tiny_is_zero) continue;
    cut(-rounded(model, kTiny));
    cut(beside(model, rounded(model, kTiny), true));
  }
  FeaturePoints points;
  points.pieces.push_back({-kUnbounded, 0, 0});
  for (const double from : cuts) points.pieces.push_back({from, from, 0});
  for (std::size_t i = 0; i < points.pieces.size(); ++i) {
    DependencePiece& piece = points.pieces[i];
    const bool is_last = i + 1 == points.pieces.size();
    const double last = is_last ? kUnbounded : beside(model, points.pieces[i + 1].from, false);
    if (piece.from <= 0 && 0 <= last && std::isinf(last) && std::isinf(piece.from))
      piece.at = 0;
    else if (thresholds.contains(piece.from))
      piece.at = piece.from;
    else if (thresholds.contains(last) || std::isinf(piece.from))
      piece.at = last;
    if (model.tiny_is_zero && is_tiny(piece.from) && piece.from < 0 && last >= 0) piece.at = 0;
  }
  return points;
}

}  // namespace forestvm::frontend
