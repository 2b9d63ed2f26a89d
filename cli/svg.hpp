// Makes drawings in SVG: parts of pages, or files of their own. Texts of a drawing are escaped, because they may come
// from files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace forestvm::cli {

inline constexpr std::size_t kLabelCharacters =
    24;                                       ///< The most characters of a feature's name beside a drawing.
inline constexpr double kDrawingWidth = 720;  ///< Width of drawings, in SVG user units.

/// Returns a drawing for a page. Screen readers say the title and, if it is not empty, the description.
std::string svg_drawing(double height, std::string_view title, std::string_view description,
                        std::string_view content);

/// Returns a drawing of svg_drawing as a file that stands alone, with its colours in it.
std::string svg_file(std::string_view drawing);

/// Returns a text for a drawing: as wide as `most` Latin characters at most, the last of which is an ellipsis if some
/// were cut. Bytes that are not UTF-8 are replaced, and the characters that XML reserves escaped.
std::string svg_label(std::string_view text, std::size_t most);

/// Returns a text for a drawing like svg_label, but whole.
std::string svg_whole(std::string_view text);

/// Returns a text element. `more` are further attributes, such as class="faint".
std::string svg_text(double x, double y, std::string_view anchor, std::string_view more,
                     std::string_view escaped);

/// A linear axis: the coordinates of two numbers in a drawing. Numbers at its ticks are round.
class LinearAxis {
 public:
  /// Shows the numbers from `low` to `high` between the coordinates `from` and `to`, with about `count` ticks.
  LinearAxis(double low, double high, double from, double to, unsigned count);

  double at(double number) const;
  const std::vector<double>& ticks() const { return ticks_; }
  /// Returns the text of a tick: as many decimals as its neighbours need.
  std::string text(double tick) const;

  /// Draws vertical lines at the ticks, with their numbers below `bottom`.
  std::string below(double top, double bottom) const;
  /// Draws horizontal lines at the ticks, with their numbers left of `left`.
  std::string beside(double left, double right) const;

 private:
  double low_, high_, from_, to_;
  double step_ = 1;
  std::vector<double> ticks_;
};

}  // namespace forestvm::cli
