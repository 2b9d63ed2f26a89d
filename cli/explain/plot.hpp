// Makes the plots of forestvm explain: drawings with their numbers, which are also written as CSV and JSON.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/explain/explanation.hpp"

namespace forestvm::cli {

/// The kinds of plots, by the names that --plot has.
inline constexpr std::array<std::string_view, 5> kPlotNames = {"importance", "beeswarm", "waterfall",
                                                               "dependence", "partial-dependence"};
enum class PlotKind : std::uint8_t { Importance, Beeswarm, Waterfall, Dependence, PartialDependence };

/// A table. A cell is a text, a number, or a whole number. NaN stands for an absent number.
struct PlotNumbers {
  using Cell = std::variant<std::string, double, std::uint64_t>;
  std::vector<std::string> columns;
  std::size_t texts = 0;  ///< Number of columns with texts, which come first.
  std::vector<std::vector<Cell>> rows{};
};

/// Returns a table as CSV with a header. Numbers are the shortest texts that read back to the same bits.
std::string csv_of(const PlotNumbers& numbers);

/// Returns a table as HTML. Numbers have six digits.
std::string html_of(const std::string& caption, const PlotNumbers& numbers);

struct Plot {
  PlotKind kind;
  std::string title;
  std::string drawing;  ///< SVG
  PlotNumbers numbers;
};

/// Draws the mean |contribution| of the shown features. The plot's numbers are those of all features.
Plot importance_plot(const Explanation& all);

/// Draws the contributions of the shown features in each row of the sample.
Plot beeswarm_plot(const Explanation& all);

/// Draws how the contributions of a row lead from the expected score to its own.
Plot waterfall_plot(const Explanation& all, const ExplainedRow& row);

/// Draws the contributions of a feature over its values, in the colours of its partner's values.
Plot dependence_plot(const Explanation& all, const ShownFeature& shown);

/// Draws the mean raw score over the values of a feature that has partial dependence.
Plot partial_dependence_plot(const Explanation& all, const ShownFeature& shown);

/// Returns a value as people read it: the name of a category or its hash, six digits of a number, or "missing".
std::string value_text(const Explanation& all, std::uint32_t feature, double value);

/// Returns the colour of each value's dot: 0 to 4 by the rank of the value among the others, kMissingColour if it is
/// missing. The page's classes for them are c0 to c4 and cx.
std::vector<std::size_t> colours_of(const std::vector<double>& values);
inline constexpr std::size_t kMissingColour = 5;

/// Draws dots. Those of one colour become one path, which takes less room than an element for each.
class Dots {
 public:
  void add(double x, double y, std::size_t colour);
  std::string svg() const;

 private:
  std::array<std::string, 6> paths_;
};

/// Draws what the colours mean: low and high values of `name`.
std::string colour_legend(double y, std::string_view name);

/// Returns the values of a feature in the sample.
std::vector<double> sample_values(const Explanation& all, std::uint32_t feature);

}  // namespace forestvm::cli
