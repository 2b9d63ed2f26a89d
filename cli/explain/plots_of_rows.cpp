// Plots of contributions in rows: the sample as a swarm of dots, and single rows as waterfalls.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <forestvm/internal/formatted.hpp>

#include "cli/explain/plot.hpp"
#include "cli/printed.hpp"
#include "cli/svg.hpp"

namespace forestvm::cli {
namespace {

constexpr double kRowsLeft = 190;  // where drawings begin, right of the labels

/// Moves dots apart that would lie on one another. Returns the distance of each from the middle line, at most `most`.
std::vector<double> spread(const std::vector<double>& x, double most) {
  constexpr double kBin = 2.5, kDistance = 2.2;
  std::vector<std::vector<std::size_t>> bins(static_cast<std::size_t>(kDrawingWidth / kBin) + 1);
  for (std::size_t i = 0; i < x.size(); ++i) bins[static_cast<std::size_t>(x[i] / kBin)].push_back(i);
  std::vector<double> offsets(x.size());
  for (const std::vector<std::size_t>& bin : bins) {
    const double distance = bin.empty() ? 0 : std::min(kDistance, 2 * most / static_cast<double>(bin.size()));
    for (std::size_t i = 0; i < bin.size(); ++i) {
      const std::size_t pair = (i + 1) / 2;
      const auto steps = static_cast<double>(pair);
      offsets[bin[i]] = distance * (i % 2 == 0 ? steps : -steps);
    }
  }
  return offsets;
}

/// A bar of a waterfall: a feature of a row, or the sum of the features that have no bar of their own.
struct Fall {
  std::string label;
  double contribution;
};

/// Returns the `most` strongest features of a row, then all others as one.
std::vector<Fall> falls_of(const Explanation& all, const ExplainedRow& row, std::size_t most) {
  std::vector<std::uint32_t> order(all.names.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::abs(row.contributions[a]) > std::abs(row.contributions[b]);
  });
  std::vector<Fall> falls;
  double rest = 0;
  std::size_t others = 0;
  for (const std::uint32_t f : order) {
    if (row.contributions[f] == 0) continue;
    if (falls.size() < most) {
      const std::string value = svg_label(value_text(all, f, row.values[f]), 12);
      falls.push_back({formatted("{} = {}", svg_label(all.names[f], 22), value), row.contributions[f]});
    } else {
      ++others;
      rest += row.contributions[f];
    }
  }
  if (others != 0) falls.push_back({std::to_string(others) + (others == 1 ? " other" : " others"), rest});
  return falls;
}

}  // namespace

Plot beeswarm_plot(const Explanation& all) {
  constexpr double kTop = 10, kHeight = 26;
  const double bottom = kTop + kHeight * static_cast<double>(all.shown.size());
  double low = 0, high = 0;
  PlotNumbers numbers{{"feature", "row", "value", "contribution"}, 1};
  for (const ShownFeature& shown : all.shown)
    for (const ExplainedRow& row : all.sample) {
      const double contribution = row.contributions[shown.feature];
      low = std::min(low, contribution);
      high = std::max(high, contribution);
      numbers.rows.push_back({all.names[shown.feature], row.number, row.values[shown.feature], contribution});
    }
  const LinearAxis axis(low, high, kRowsLeft + 10, kDrawingWidth - 20, 7);
  std::string svg = axis.below(kTop, bottom);
  svg +=
      printed("<path class=\"axis\" stroke-width=\"2\" d=\"M%.1f %.1fV%.1f\"/>\n", axis.at(0), kTop, bottom);
  Dots dots;
  for (std::size_t s = 0; s < all.shown.size(); ++s) {
    const std::uint32_t feature = all.shown[s].feature;
    const double y = kTop + kHeight * (static_cast<double>(s) + 0.5);
    svg += svg_text(kRowsLeft - 10, y + 4, "end", {}, svg_label(all.names[feature], kLabelCharacters));
    std::vector<double> x;
    for (const ExplainedRow& row : all.sample) x.push_back(axis.at(row.contributions[feature]));
    const std::vector<double> offsets = spread(x, kHeight / 2 - 3);
    const std::vector<std::size_t> colours = colours_of(sample_values(all, feature));
    for (std::size_t i = 0; i < x.size(); ++i) dots.add(x[i], y + offsets[i], colours[i]);
  }
  svg += dots.svg();
  svg += svg_text(kRowsLeft - 24, bottom + 14, "end", "class=\"faint\"", "contribution");
  svg += colour_legend(bottom + 34, "value of the feature");
  const std::string title =
      printed("Contributions of %zu features in %zu rows", all.shown.size(), all.sample.size());
  return {PlotKind::Beeswarm, title,
          svg_drawing(
              bottom + 50, title,
              "A dot for each row of the sample and each feature: its place is the contribution to the raw "
              "score, its colour the value of the feature",
              svg),
          std::move(numbers)};
}

Plot waterfall_plot(const Explanation& all, const ExplainedRow& row) {
  constexpr double kTop = 34, kHeight = 24, kLabels = 250, kRight = kDrawingWidth - 70;
  constexpr std::size_t kMaxFalls = 14;
  const std::vector<Fall> falls = falls_of(all, row, kMaxFalls);
  const double bottom = kTop + kHeight * static_cast<double>(falls.size());
  double at = row.contributions.back(), low = at, high = at;
  for (const Fall& fall : falls) {
    at += fall.contribution;
    low = std::min(low, at);
    high = std::max(high, at);
  }
  const double score = row.score();
  const LinearAxis axis(std::min(low, score), std::max(high, score), kLabels + 10, kRight, 6);
  std::string svg = axis.below(kTop, bottom);
  svg += svg_text(kLabels - 24, bottom + 14, "end", "class=\"faint\"", "raw score");
  const auto mark = [&](double number, double y, const char* name) {
    const double x = axis.at(number);
    svg += printed("<path class=\"axis\" stroke-width=\"2\" d=\"M%.1f %.1fV%.1f\"/>", x, kTop - 8, bottom);
    svg += svg_text(x, y, x > (kLabels + kRight) / 2 ? "end" : "start", {}, printed("%s %.6g", name, number));
  };
  mark(row.contributions.back(), kTop - 20, "expected score");
  at = row.contributions.back();
  for (std::size_t i = 0; i < falls.size(); ++i) {
    const double y = kTop + kHeight * static_cast<double>(i), next = at + falls[i].contribution;
    const double left = std::min(axis.at(at), axis.at(next)), right = std::max(axis.at(at), axis.at(next));
    const bool is_up = falls[i].contribution > 0;
    svg += svg_text(kLabels, y + 16, "end", {}, falls[i].label);
    svg += printed("<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                   is_up ? "strong" : "mark", left, y + 5, std::max(0.5, right - left), kHeight - 10);
    svg += svg_text(kDrawingWidth - 4, y + 16, "end", {}, printed("%+.4g", falls[i].contribution));
    at = next;
  }
  mark(score, kTop - 6, "raw score");
  PlotNumbers numbers{{"feature", "row", "value", "contribution"}, 1};
  for (std::size_t f = 0; f < all.names.size(); ++f)
    numbers.rows.push_back({all.names[f], row.number, row.values[f], row.contributions[f]});
  const double none = std::nan("");
  numbers.rows.push_back({std::string("expected"), row.number, none, row.contributions.back()});
  const std::string title =
      printed("Row %llu: from the expected score %.6g to the raw score %.6g",
              static_cast<unsigned long long>(row.number), row.contributions.back(), score);
  return {PlotKind::Waterfall, title,
          svg_drawing(bottom + 24, title,
                      "A bar for each feature: how far its contribution moves the raw score", svg),
          std::move(numbers)};
}

}  // namespace forestvm::cli
