// See plot.hpp: what the plots have in common.
#include "cli/explain/plot.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <forestvm/internal/formatted.hpp>

#include "cli/html.hpp"
#include "cli/io/csv.hpp"
#include "cli/printed.hpp"
#include "cli/svg.hpp"

namespace forestvm::cli {

std::string csv_of(const PlotNumbers& numbers) {
  std::string csv;
  const auto begin_cell = [&](bool is_first) { csv += is_first ? "" : ","; };
  for (std::size_t i = 0; i < numbers.columns.size(); ++i) {
    begin_cell(i == 0);
    append_text(csv, numbers.columns[i]);
  }
  csv += '\n';
  for (const std::vector<PlotNumbers::Cell>& row : numbers.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      begin_cell(i == 0);
      if (const auto* const text = std::get_if<std::string>(&row[i]))
        append_text(csv, *text);
      else if (const auto* const whole = std::get_if<std::uint64_t>(&row[i]))
        csv += std::to_string(*whole);
      else
        append_number(csv, std::get<double>(row[i]));
    }
    csv += '\n';
  }
  return csv;
}

std::string html_of(const std::string& caption, const PlotNumbers& numbers) {
  std::vector<std::vector<std::string>> rows;
  for (const std::vector<PlotNumbers::Cell>& row : numbers.rows) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (const PlotNumbers::Cell& cell : row)
      if (const auto* const text = std::get_if<std::string>(&cell))
        cells.push_back(svg_whole(*text));
      else if (const auto* const whole = std::get_if<std::uint64_t>(&cell))
        cells.push_back(std::to_string(*whole));
      else
        cells.push_back(std::isnan(std::get<double>(cell)) ? "–" : printed("%.6g", std::get<double>(cell)));
  }
  return html_table(caption, numbers.columns, numbers.texts, rows);
}

std::string value_text(const Explanation& all, std::uint32_t feature, double value) {
  if (std::isnan(value)) return "missing";
  if (all.hashed[feature])
    return printed("#%08x", static_cast<std::uint32_t>(static_cast<std::int64_t>(value)));
  const std::vector<std::string>& names = all.categories[feature];
  if (value >= 0 && value < static_cast<double>(names.size()) && value == std::trunc(value))
    return names[static_cast<std::size_t>(value)];
  return printed("%.6g", value);
}

std::vector<std::size_t> colours_of(const std::vector<double>& values) {
  std::vector<double> ordered;
  for (const double value : values)
    if (!std::isnan(value)) ordered.push_back(value);
  std::sort(ordered.begin(), ordered.end());
  std::vector<std::size_t> colours;
  for (const double value : values) {
    if (std::isnan(value)) {
      colours.push_back(kMissingColour);
      continue;
    }
    // Equal values have the colour of the middle one of them.
    const auto [first, last] = std::equal_range(ordered.begin(), ordered.end(), value);
    const double rank = static_cast<double>((first - ordered.begin()) + (last - ordered.begin())) / 2;
    colours.push_back(
        std::min<std::size_t>(4, static_cast<std::size_t>(5 * rank / static_cast<double>(ordered.size()))));
  }
  return colours;
}

void Dots::add(double x, double y, std::size_t colour) { paths_[colour] += printed("M%.1f %.1fh0", x, y); }

std::string Dots::svg() const {
  std::string svg;
  for (std::size_t c = 0; c < paths_.size(); ++c) {
    if (paths_[c].empty()) continue;
    svg += formatted("<path class=\"dots c{}\" d=\"{}\"/>\n", c == kMissingColour ? "x" : std::to_string(c),
                     paths_[c]);
  }
  return svg;
}

std::string colour_legend(double y, std::string_view name) {
  constexpr double kRight = kDrawingWidth - 20;
  std::string svg = svg_text(kRight - 190, y + 4, "end", "class=\"faint\"", svg_label(name, 24) + ": low");
  Dots dots;
  for (std::size_t c = 0; c <= kMissingColour; ++c)
    dots.add(kRight - 180 + 14.0 * static_cast<double>(c) + (c == kMissingColour ? 50 : 0), y, c);
  svg += dots.svg();
  svg += svg_text(kRight - 112, y + 4, "start", "class=\"faint\"", "high");
  return svg + svg_text(kRight - 50, y + 4, "start", "class=\"faint\"", "missing");
}

std::vector<double> sample_values(const Explanation& all, std::uint32_t feature) {
  std::vector<double> values;
  for (const ExplainedRow& row : all.sample) values.push_back(row.values[feature]);
  return values;
}

}  // namespace forestvm::cli
