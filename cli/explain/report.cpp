// See report.hpp.
#include "cli/explain/report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include <forestvm/internal/formatted.hpp>

#include "cli/html.hpp"
#include "cli/printed.hpp"
#include "cli/svg.hpp"

namespace forestvm::cli {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const PlotNumbers& numbers) {
  Json rows = Json::array();
  for (const std::vector<PlotNumbers::Cell>& row : numbers.rows) {
    Json record = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i)
      std::visit([&](const auto& cell) { record[numbers.columns[i]] = cell; }, row[i]);
    rows.push_back(std::move(record));
  }
  return rows;
}

std::string facts(const Explanation& all) {
  std::string html = "<dl>\n";
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) html += formatted("<dt>{}</dt><dd>{}</dd>\n", name, svg_whole(value));
  };
  add("Model", all.model);
  add("Trainer", all.trainer);
  add("Objective", all.objective);
  add("Raw score of", all.output);
  add("Rows",
      formatted("{}: {} rows, of which drawings show {}", all.rows_name, all.rows, all.sample.size()));
  add("Expected score", printed("%.6g", all.expected));
  add("Mean raw score of the rows", printed("%.6g", all.mean));
  return html + "</dl>\n";
}

std::string drawn(const Plot& plot) { return html_drawing(plot.title, plot.drawing); }

std::string with_numbers(const Plot& plot) {
  return formatted("{}<details>\n<summary>Numbers of this drawing</summary>\n{}</details>\n", drawn(plot),
                   html_of(plot.title, plot.numbers));
}

std::string section(const char* id, const std::string& title, const std::string& content) {
  return formatted("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, content);
}

std::string features(const Explanation& all) {
  std::string html =
      "<p>The first drawing of a feature has its contributions in the rows of the sample, in the colours of the "
      "feature with which it interacts most. The second has its partial dependence: the mean raw score of all rows if "
      "the feature had one value in each, at all thresholds of the model.</p>\n";
  const auto id = [](const ShownFeature& shown) { return formatted("feature-{}", shown.feature); };
  html += "<nav aria-label=\"Features\">\n<ul>\n";
  for (const ShownFeature& shown : all.shown)
    html += formatted("<li><a href=\"#{}\">{}</a></li>\n", id(shown), svg_whole(all.names[shown.feature]));
  html += "</ul>\n</nav>\n";
  for (const ShownFeature& shown : all.shown) {
    html += formatted("<h3 id=\"{}\">{}</h3>\n", id(shown), svg_whole(all.names[shown.feature]));
    if (shown.partner)
      html += formatted("<p>Interacts most with {}.</p>\n", svg_whole(all.names[*shown.partner]));
    html += drawn(dependence_plot(all, shown));
    if (shown.dependence)
      html += drawn(partial_dependence_plot(all, shown));
    else
      html +=
          "<p>It has no partial dependence, because the model tests columns that are computed from it.</p>\n";
  }
  return html;
}

}  // namespace

std::vector<Plot> plots_of(const Explanation& all, PlotKind kind) {
  std::vector<Plot> plots;
  switch (kind) {
    case PlotKind::Importance:
      plots.push_back(importance_plot(all));
      break;
    case PlotKind::Beeswarm:
      plots.push_back(beeswarm_plot(all));
      break;
    case PlotKind::Waterfall:
      for (const ExplainedRow& row : all.chosen) plots.push_back(waterfall_plot(all, row));
      break;
    case PlotKind::Dependence:
      for (const ShownFeature& shown : all.shown) plots.push_back(dependence_plot(all, shown));
      break;
    case PlotKind::PartialDependence:
      for (const ShownFeature& shown : all.shown)
        if (shown.dependence) plots.push_back(partial_dependence_plot(all, shown));
      break;
  }
  return plots;
}

std::string explain_page(const Explanation& all) {
  std::string body = facts(all);
  body +=
      "<nav aria-label=\"Parts of this page\">\n<ul>\n<li><a href=\"#importance\">Importance</a></li>\n"
      "<li><a href=\"#swarm\">Contributions</a></li>\n<li><a href=\"#rows\">Rows</a></li>\n"
      "<li><a href=\"#features\">Features</a></li>\n</ul>\n</nav>\n";
  body +=
      "<p>A contribution says how much a feature moves the raw score of a row away from the expected score: exact SHAP "
      "values by the paths of the trees. The contributions of a row and the expected score add up to its raw "
      "score.</p>\n";
  for (const std::string& note : all.notes) body += formatted("<p>{}</p>\n", svg_whole(note));
  body += section(
      "importance", "Importance",
      "<p>The mean of |contribution| over all rows. The numbers include the importance that the model's file "
      "holds: the sum of the gains of each feature's splits (a dash if the file does not say them), the number of "
      "these splits, and the training weight that reached them (the cover).</p>\n" +
          with_numbers(importance_plot(all)));
  body += section("swarm", "Contributions", drawn(beeswarm_plot(all)));
  std::string rows;
  for (const Plot& plot : plots_of(all, PlotKind::Waterfall))
    rows += formatted("<h3>{}</h3>\n{}", svg_whole(plot.title), with_numbers(plot));
  body += section("rows", "Rows", rows);
  body += section("features", "Features", features(all));
  return html_page("Contributions of " + all.model, body);
}

std::string explain_json(const Explanation& all, std::optional<PlotKind> kind) {
  Json page = {{"model", all.model}, {"rows", all.rows}, {"sample", all.sample.size()}};
  if (!all.output.empty()) page["score"] = all.output;
  page["expected"] = all.expected;
  page["mean"] = all.mean;
  for (std::size_t k = 0; k < kPlotNames.size(); ++k) {
    const auto mine = static_cast<PlotKind>(k);
    if (kind && *kind != mine) continue;
    Json& rows = page[std::string(kPlotNames[k])] = Json::array();
    for (const Plot& plot : plots_of(all, mine))
      for (Json& row : json_of(plot.numbers)) rows.push_back(std::move(row));
  }
  return page.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace forestvm::cli
