// Makes the page of forestvm tune's report. It shows times as multiples of the least time for the same number of rows,
// as figure 5 of SilvanForge does. To compare times of different heats, each is first divided by auto's time in its own
// heat, because a busy machine changes this ratio less.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "cli/html.hpp"
#include "cli/printed.hpp"
#include "cli/schedule_lines.hpp"
#include "cli/svg.hpp"
#include "cli/tune_report.hpp"
#include "scheduler/choose/schedule_space.hpp"

namespace forestvm::cli {
namespace {

constexpr std::size_t kBins = 36;
constexpr double kMaxRatio = 64;  ///< The largest ratio on an axis; slower schedules are drawn there.

std::string rows_text(std::uint64_t rows) { return std::to_string(rows) + (rows == 1 ? " row" : " rows"); }

/// A schedule's time divided by the best schedule's time.
struct Ratio {
  std::size_t point;
  double ratio;
};

/// The ratios of all schedules that were tried for a batch, and the ratio of `auto`, which is not a point of the space.
struct Distribution {
  std::vector<Ratio> ratios;  ///< The fastest first.
  double automatic = 1;
};

Distribution distribution_of(const Tuning& tuning, std::size_t b) {
  Distribution all;
  double best = 1;  // the least time divided by auto's; 1 is auto's own
  for (const Trial& trial : tuning.trials)
    if (trial.of_auto[b] > 0) best = std::min(best, trial.of_auto[b]);
  for (const Trial& trial : tuning.trials)
    if (trial.of_auto[b] > 0) all.ratios.push_back({trial.point, trial.of_auto[b] / best});
  std::sort(all.ratios.begin(), all.ratios.end(), [](const Ratio& mine, const Ratio& other) {
    return std::pair(mine.ratio, mine.point) < std::pair(other.ratio, other.point);
  });
  all.automatic = 1 / best;
  return all;
}

/// A logarithmic axis of ratios from 1 to `most`, between two coordinates of a drawing.
struct Axis {
  double left, right, most;

  double at(double ratio) const {
    return left + (right - left) * std::log2(std::min(ratio, most)) / std::log2(most);
  }

  /// Draws a line and a label at each power of two.
  std::string ticks(double top, double bottom) const {
    std::string svg;
    for (int power = 0; std::exp2(power) <= most; ++power) {
      const double ratio = std::exp2(power);
      svg += printed(
          "<path class=\"axis\" d=\"M%.1f %.1fV%.1f\"/><text class=\"faint\" x=\"%.1f\" y=\"%.1f\" "
          "text-anchor=\"middle\">%s%gx</text>\n",
          at(ratio), top, bottom, at(ratio), bottom + 14, ratio == most && most == kMaxRatio ? "≥ " : "",
          ratio);
    }
    return svg;
  }
};

/// Returns the axis on which a batch's ratios lie.
Axis axis_of(const Distribution& all, double left) {
  const double slowest =
      all.ratios.empty() ? all.automatic : std::max(all.automatic, all.ratios.back().ratio);
  return {left, kDrawingWidth - 20, std::clamp(std::exp2(std::ceil(std::log2(slowest))), 2.0, kMaxRatio)};
}

/// Draws the number of schedules by their time, as a multiple of the best time.
std::string histogram(const Distribution& all, const std::string& automatic, std::uint64_t batch) {
  const double top = 30, bottom = 170;
  const Axis axis = axis_of(all, 20);
  std::array<std::size_t, kBins> counts{};
  for (const Ratio& ratio : all.ratios) {
    const double share = (axis.at(ratio.ratio) - axis.left) / (axis.right - axis.left);
    ++counts[std::min(kBins - 1, static_cast<std::size_t>(share * kBins))];
  }
  const std::size_t most = std::max<std::size_t>(1, *std::max_element(counts.begin(), counts.end()));
  const double width = (axis.right - axis.left) / kBins;
  std::string svg = axis.ticks(top, bottom);
  for (std::size_t i = 0; i < kBins; ++i) {
    if (counts[i] == 0) continue;
    const double height = (bottom - top) * static_cast<double>(counts[i]) / static_cast<double>(most);
    svg += printed(
        "<rect class=\"mark\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>%zu "
        "schedules</title></rect>\n",
        axis.left + width * static_cast<double>(i) + 1, bottom - height, width - 2, height, counts[i]);
  }
  const double at = axis.at(all.automatic);
  svg += printed("<path class=\"strong\" stroke-width=\"2\" d=\"M%.1f %.1fV%.1f\"/>", at, top - 8, bottom);
  svg += printed("<text class=\"strong\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s %.2fx</text>\n", at,
                 top - 12, at > kDrawingWidth / 2 ? "end" : "start", automatic.c_str(), all.automatic);
  return svg_drawing(
      bottom + 24,
      printed("Distribution of %zu schedules over their time, as a multiple of the best one's, for calls "
              "of %s; %s takes %.2f times the best time",
              all.ratios.size(), rows_text(batch).c_str(), automatic.c_str(), all.automatic),
      {}, svg);
}

std::string shares(const Distribution& all) {
  std::vector<std::vector<std::string>> rows;
  for (const double limit : {1.02, 1.1, 1.5, 2.0, 4.0}) {
    const auto within = static_cast<std::size_t>(std::count_if(
        all.ratios.begin(), all.ratios.end(), [&](const Ratio& r) { return r.ratio <= limit; }));
    rows.push_back({printed("at most %.2fx", limit), std::to_string(within),
                    printed("%.1f%%", 100.0 * static_cast<double>(within) /
                                          static_cast<double>(std::max<std::size_t>(1, all.ratios.size())))});
  }
  return html_table("Schedules by their time, as a multiple of the best one's",
                    {"time", "schedules", "share"}, 1, rows);
}

/// The times of the schedules that have a certain value of a parameter, as multiples of the best time.
struct ValueTimes {
  std::string_view parameter, value;
  std::vector<double> ratios;  ///< ascending
};

std::vector<ValueTimes> times_by_value(const Distribution& all, const scheduler::ScheduleSpace& space) {
  std::vector<ValueTimes> times;
  for (std::size_t p = 0; p < space.parameters.size(); ++p)
    for (const std::string_view value : space.parameters[p].values) {
      ValueTimes mine{space.parameters[p].name, value, {}};
      for (const Ratio& ratio : all.ratios)
        if (scheduler::point_values(space, ratio.point)[p] == value) mine.ratios.push_back(ratio.ratio);
      if (!mine.ratios.empty()) times.push_back(std::move(mine));
    }
  return times;
}

double median(const std::vector<double>& ascending) { return ascending[ascending.size() / 2]; }

/// Draws, for each value of each parameter, the range from the best to the median time of the schedules with that
/// value.
std::string sensitivity(const Distribution& all, const scheduler::ScheduleSpace& space, std::uint64_t batch) {
  const double row = 18, top = 10;
  const Axis axis = axis_of(all, 190);
  const std::vector<ValueTimes> times = times_by_value(all, space);
  const double bottom = top + row * static_cast<double>(times.size());
  std::string svg = axis.ticks(top, bottom);
  std::vector<std::vector<std::string>> cells;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const ValueTimes& mine = times[i];
    const double y = top + row * (static_cast<double>(i) + 0.5);
    const double best = mine.ratios.front(), middle = median(mine.ratios);
    const bool is_first = i == 0 || times[i - 1].parameter != mine.parameter;
    const std::string parameter = html_text(mine.parameter), value = html_text(mine.value);
    if (is_first) {
      svg += printed("<path class=\"axis\" d=\"M0 %.1fH%.0f\"/>", y - row / 2, kDrawingWidth);
      svg += printed("<text x=\"0\" y=\"%.1f\">%s</text>", y + 4, parameter.c_str());
    }
    svg += printed("<text x=\"180\" y=\"%.1f\" text-anchor=\"end\">%s</text>", y + 4, value.c_str());
    svg += printed("<path class=\"mark\" stroke-width=\"2\" d=\"M%.1f %.1fH%.1f\"/>", axis.at(best), y,
                   axis.at(middle));
    svg += printed("<circle class=\"mark\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", axis.at(best), y);
    cells.push_back({parameter, value, std::to_string(mine.ratios.size()), printed("%.2f", best),
                     printed("%.2f", middle)});
  }
  return formatted(
      "{}<details>\n<summary>Numbers of this drawing</summary>\n{}</details>\n",
      html_drawing(
          "Times by parameter",
          svg_drawing(
              bottom + 24,
              formatted(
                  "Times of schedules by the values of their parameters, for calls of {}: a dot is the best schedule with a value, its line ends at the median; the table has the numbers",
                  rows_text(batch)),
              {}, svg)),
      html_table("Times as multiples of the best", {"parameter", "value", "schedules", "best", "median"}, 2,
                 cells));
}

std::string finalists(const TunedBatch& batch) {
  std::vector<std::vector<std::string>> rows;
  for (const Finalist& finalist : batch.finalists)
    rows.push_back({formatted("<details>\n<summary>{}</summary>\n{}</details>", html_text(finalist.name),
                              html_listing("Schedule " + finalist.name, finalist.schedule)),
                    printed("%.4f", finalist.us_per_row), std::to_string(finalist.turns)});
  return html_table("The schedules that raced; open one to see its text",
                    {"schedule", "us per row", "samples"}, 1, rows);
}

std::string verdict(const TunedBatch& batch, const std::string& automatic) {
  const Finalist& best = batch.finalists.front();
  if (best.name == automatic)
    return printed("The schedule %s stays: no other one measured is 2%% faster. It takes %.4f us a row.",
                   automatic.c_str(), batch.auto_us_per_row);
  return printed("The chosen schedule takes %.4f us a row, %s %.4f: %.2f times as long. ", best.us_per_row,
                 automatic.c_str(), batch.auto_us_per_row, batch.auto_us_per_row / best.us_per_row) +
         (batch.is_separated ? "It is ahead of the second one beyond chance."
                             : "The race ended before it was ahead of the second one beyond chance.");
}

std::string section(const TuneReport& report, std::size_t b) {
  const TunedBatch& batch = report.tuning.batches[b];
  const Distribution all = distribution_of(report.tuning, b);
  std::string html = printed("<section id=\"rows-%llu\">\n<h2>Calls of %s</h2>\n",
                             static_cast<unsigned long long>(batch.batch), rows_text(batch.batch).c_str());
  html += formatted("<p>{}</p>\n{}", verdict(batch, report.calls.automatic), finalists(batch));
  if (!all.ratios.empty())
    html +=
        formatted("<h3>Distribution of times</h3>\n{}{}<h3>Times by parameter</h3>\n{}",
                  html_drawing("Distribution of times", histogram(all, report.calls.automatic, batch.batch)),
                  shares(all), sensitivity(all, *report.calls.space, batch.batch));
  return html + "</section>\n";
}

std::string facts(const TuneReport& report) {
  const Tuning& tuning = report.tuning;
  const std::string search =
      std::string(kStrategyNames[static_cast<std::size_t>(report.strategy)]) +
      printed(", at most %g s; %zu schedules measured, %zu refused, of %zu planned", report.budget.count(),
              tuning.tried, tuning.refused, tuning.planned + 1) +
      (tuning.is_complete() ? "" : "; ended before all were measured");
  std::string html = "<dl>\n";
  for (const auto& [name, value] : std::initializer_list<std::pair<std::string_view, std::string>>{
           {"Model", report.calls.model},
           {"Rows", report.calls.rows},
           {"Machine", report.calls.machine},
           {"Contract", std::string(name_of(report.calls.contract))},
           {"Search", search}})
    html += formatted("<dt>{}</dt><dd>{}</dd>\n", name, html_text(value));
  return html + "</dl>\n";
}

}  // namespace

std::string tune_page(const TuneReport& report) {
  const Tuning& tuning = report.tuning;
  std::string body = facts(report) + "<nav aria-label=\"Parts of this page\">\n<ul>\n";
  for (const TunedBatch& batch : tuning.batches)
    body += printed("<li><a href=\"#rows-%llu\">%s</a></li>\n", static_cast<unsigned long long>(batch.batch),
                    rows_text(batch.batch).c_str());
  body += "<li><a href=\"#plans\">Plans</a></li>\n</ul>\n</nav>\n";
  body +=
      "<p>Times are those of calls for raw scores. They are shown as multiples of the best time that was measured for "
      "calls of as many rows. A search measures a part of the space only, the more promising one first, so a value "
      "of a parameter may be missing, or stand for few schedules.</p>\n";
  for (std::size_t b = 0; b < tuning.batches.size(); ++b) body += section(report, b);
  body += formatted(
      "<section id=\"plans\">\n<h2>Plans of the program</h2>\n{}<h3>Loop nests</h3>\n{}</section>\n",
      html_listing("The schedule of the program", print(tuning.schedule)),
      html_listing("The loop nest of each plan", report.loops));
  return html_page("Schedules of " + report.calls.model, body);
}

}  // namespace forestvm::cli
