// Plots of features: their importance, their contributions over their values, and the mean score over their values.
#include <algorithm>
#include <cmath>
#include <limits>

#include <forestvm/internal/formatted.hpp>

#include "cli/explain/plot.hpp"
#include "cli/printed.hpp"
#include "cli/svg.hpp"

namespace forestvm::cli {
namespace {

constexpr double kTop = 24, kBottom = 220, kLeft = 70, kRight = kDrawingWidth - 20;
constexpr double kMissingX = kRight - 24;        ///< Where missing values are drawn, right of the axis.
constexpr double kMissingEdge = kMissingX - 44;  ///< Where the axis ends beside missing values.
constexpr std::size_t kMaxCategories = 30;       ///< Most categories that are drawn.
constexpr std::size_t kMaxTickNames = 8;         ///< Most categories whose names fit below an axis.

/// The range of numbers that an axis shows.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void add(double number) {
    if (!std::isfinite(number)) return;
    low = std::min(low, number);
    high = std::max(high, number);
  }
  bool is_empty() const { return low > high; }
  /// Returns the axis of the range, a little wider, or of 0 to 1 if it is empty.
  LinearAxis axis(double from, double to, unsigned count) const {
    if (is_empty()) return {0, 1, from, to, count};
    const double margin = (high - low) * 0.03;
    return {low - margin, high + margin, from, to, count};
  }
};

/// Says what the vertical axis shows.
std::string vertical_title(const char* text) {
  return svg_text(kLeft, kTop - 10, "start", "class=\"faint\"", text);
}

/// Draws the mark below missing values.
std::string missing_mark() {
  return printed("<path class=\"axis\" d=\"M%.1f %.1fV%.1f\"/>", kMissingEdge, kTop, kBottom) +
         svg_text(kMissingX, kBottom + 14, "middle", "class=\"faint\"", "missing");
}

/// Draws the axis of a feature's values. Categories are at the numbers of their codes.
std::string values_axis(const Explanation& all, std::uint32_t feature, const LinearAxis& axis) {
  const std::vector<std::string>& names = all.categories[feature];
  if (names.empty()) return axis.below(kTop, kBottom);
  std::string svg;
  const std::size_t step = (names.size() + kMaxTickNames - 1) / kMaxTickNames;
  for (std::size_t i = 0; i < names.size(); i += step) {
    const double x = axis.at(static_cast<double>(i));
    svg += printed("<path class=\"axis\" d=\"M%.1f %.1fV%.1f\"/>", x, kTop, kBottom);
    svg += svg_text(x, kBottom + 14, "middle", "class=\"faint\"", svg_label(names[i], 9));
  }
  return svg;
}

/// Draws the piecewise constant line of the means over numbers.
std::string steps_of(const Dependence& dependence, const LinearAxis& x, const LinearAxis& y, double right) {
  std::string path;
  for (std::size_t i = 0; i < dependence.pieces.size(); ++i) {
    const DependencePiece& piece = dependence.pieces[i];
    const bool is_last = i + 1 == dependence.pieces.size();
    if (i == 0) path += printed("M%.1f %.1f", kLeft, y.at(piece.mean));
    if (i > 0) path += printed("V%.1f", y.at(piece.mean));
    path += printed("H%.1f", is_last ? right : x.at(dependence.pieces[i + 1].from));
  }
  return formatted("<path class=\"line\" d=\"{}\"/>\n", path);
}

/// Draws a dot and a label for each category.
std::string category_dots(const Explanation& all, const ShownFeature& shown, double& bottom) {
  constexpr double kHeight = 20, kLabels = 190;
  const std::vector<DependencePiece>& pieces = shown.dependence->pieces;
  const std::size_t count = std::min(pieces.size(), kMaxCategories);
  Range range;
  range.add(shown.dependence->missing);
  for (std::size_t i = 0; i < count; ++i) range.add(pieces[i].mean);
  const LinearAxis axis = range.axis(kLabels + 10, kRight, 6);
  bottom = kTop + kHeight * static_cast<double>(count + 1);
  std::string svg = axis.below(kTop, bottom);
  svg += svg_text(kLabels - 24, bottom + 14, "end", "class=\"faint\"", "mean raw score");
  for (std::size_t i = 0; i <= count; ++i) {
    const double y = kTop + kHeight * (static_cast<double>(i) + 0.5);
    const bool is_missing = i == count, is_other = i + 1 == pieces.size();
    const std::string label = is_missing ? "missing"
                              : is_other ? "any other"
                                         : value_text(all, shown.feature, pieces[i].at);
    svg += svg_text(kLabels, y + 4, "end", {}, svg_label(label, kLabelCharacters));
    svg += printed("<circle class=\"mark\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
                   axis.at(is_missing ? shown.dependence->missing : pieces[i].mean), y);
  }
  return svg;
}

}  // namespace

Plot importance_plot(const Explanation& all) {
  constexpr double kHeight = 22, kLabels = 190, kEnd = kDrawingWidth - 70;
  const double bottom = kTop + kHeight * static_cast<double>(all.shown.size());
  double most = 0;
  for (const ShownFeature& shown : all.shown) most = std::max(most, all.importance[shown.feature]);
  const LinearAxis axis(0, most, kLabels + 10, kEnd, 6);
  std::string svg = axis.below(kTop, bottom);
  svg += svg_text(kLabels - 24, bottom + 14, "end", "class=\"faint\"", "mean |contribution|");
  for (std::size_t s = 0; s < all.shown.size(); ++s) {
    const std::uint32_t feature = all.shown[s].feature;
    const double y = kTop + kHeight * static_cast<double>(s), x = axis.at(0);
    svg += svg_text(kLabels, y + 15, "end", {}, svg_label(all.names[feature], kLabelCharacters));
    svg += printed("<rect class=\"mark\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", x, y + 4,
                   axis.at(all.importance[feature]) - x, kHeight - 8);
    svg += svg_text(kDrawingWidth - 4, y + 15, "end", {}, printed("%.4g", all.importance[feature]));
  }
  PlotNumbers numbers{{"feature", "mean |contribution|", "gain", "splits", "cover"}, 1};
  std::vector<std::uint32_t> order(all.names.size());
  for (std::uint32_t f = 0; f < order.size(); ++f) order[f] = f;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return all.importance[a] > all.importance[b]; });
  for (const std::uint32_t f : order)
    numbers.rows.push_back({all.names[f], all.importance[f], all.gain[f], all.splits[f], all.cover[f]});
  const std::string title = printed("Mean |contribution| of %zu features", all.shown.size());
  return {PlotKind::Importance, title,
          svg_drawing(bottom + 24, title, "A bar for each feature; the table has the numbers", svg),
          std::move(numbers)};
}

Plot dependence_plot(const Explanation& all, const ShownFeature& shown) {
  const std::vector<double> values = sample_values(all, shown.feature);
  const std::vector<double> colouring = sample_values(all, shown.partner.value_or(shown.feature));
  Range x_range, y_range;
  PlotNumbers numbers{{"feature", "partner", "row", "value", "contribution", "partner value"}, 2};
  const std::string partner = shown.partner ? all.names[*shown.partner] : "";
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double contribution = all.sample[i].contributions[shown.feature];
    x_range.add(values[i]);
    y_range.add(contribution);
    numbers.rows.push_back({all.names[shown.feature], partner, all.sample[i].number, values[i], contribution,
                            shown.partner ? colouring[i] : std::nan("")});
  }
  for (std::size_t i = 0; i < all.categories[shown.feature].size(); ++i) x_range.add(static_cast<double>(i));
  const bool has_missing =
      std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  const double right = has_missing ? kMissingEdge : kRight;
  const LinearAxis x = x_range.axis(kLeft, right, 7), y = y_range.axis(kBottom, kTop, 5);
  std::string svg =
      values_axis(all, shown.feature, x) + y.beside(kLeft, kRight) + (has_missing ? missing_mark() : "");
  const std::vector<std::size_t> colours =
      shown.partner ? colours_of(colouring) : std::vector<std::size_t>(values.size(), 0);
  Dots dots;
  for (std::size_t i = 0; i < values.size(); ++i)
    dots.add(std::isnan(values[i]) ? kMissingX : x.at(values[i]),
             y.at(all.sample[i].contributions[shown.feature]), colours[i]);
  svg += dots.svg() + vertical_title("contribution");
  svg += svg_text(kLeft, kBottom + 36, "start", "class=\"faint\"", svg_label(all.names[shown.feature], 34));
  if (shown.partner) svg += colour_legend(kBottom + 32, partner);
  const std::string title = formatted("Contribution of {} over its values", all.names[shown.feature]);
  return {PlotKind::Dependence, title,
          svg_drawing(kBottom + 48, title,
                      "A dot for each row of the sample" +
                          (shown.partner ? ", in the colour of the value of " + partner : std::string()),
                      svg),
          std::move(numbers)};
}

Plot partial_dependence_plot(const Explanation& all, const ShownFeature& shown) {
  const Dependence& dependence = *shown.dependence;
  PlotNumbers numbers{{"feature", "from", "at", "mean raw score"}, 1};
  const std::string& name = all.names[shown.feature];
  for (const DependencePiece& piece : dependence.pieces)
    numbers.rows.push_back({name, piece.from, piece.at, piece.mean});
  numbers.rows.push_back({name, std::nan(""), std::nan(""), dependence.missing});
  const std::string title = "Mean raw score by the value of " + name;
  const auto plot = [&](double height, const std::string& svg, const char* description) {
    return Plot{PlotKind::PartialDependence, title, svg_drawing(height, title, description, svg), numbers};
  };
  if (dependence.categories) {
    double bottom = 0;
    const std::string svg = category_dots(all, shown, bottom);
    return plot(bottom + 24, svg, "A dot for each category that the model names");
  }
  const std::vector<double> values = sample_values(all, shown.feature);
  const bool has_missing =
      std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  Range x_range, y_range;
  for (const double value : values) x_range.add(value);
  for (const DependencePiece& piece : dependence.pieces) {
    x_range.add(piece.from);
    y_range.add(piece.mean);
  }
  if (has_missing) y_range.add(dependence.missing);
  const double right = has_missing ? kMissingEdge : kRight;
  const LinearAxis x = x_range.axis(kLeft, right, 7), y = y_range.axis(kBottom, kTop, 5);
  std::string svg = x.below(kTop, kBottom) + y.beside(kLeft, kRight) + (has_missing ? missing_mark() : "");
  svg += steps_of(dependence, x, y, right);
  if (has_missing)
    svg += printed("<circle class=\"mark\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", kMissingX,
                   y.at(dependence.missing));
  // Short lines above the axis show where the sample's values lie.
  std::string ticks;
  for (const double value : values)
    if (std::isfinite(value)) ticks += printed("M%.1f %.1fv-5", x.at(value), kBottom);
  svg += formatted("<path class=\"strong\" stroke-width=\"0.5\" d=\"{}\"/>\n", ticks);
  svg += vertical_title("mean raw score");
  svg += svg_text(kLeft, kBottom + 36, "start", "class=\"faint\"", svg_label(name, 34));
  return plot(
      kBottom + 48, svg,
      "The line is the mean raw score of all rows if the feature had this value in each; the short lines "
      "below are the values of the sample");
}

}  // namespace forestvm::cli
