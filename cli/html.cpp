// See html.hpp.
#include "cli/html.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::cli {
namespace {

// The contrast of text and of marks with their background is at least 4.5 in both settings.
constexpr std::string_view kPageStyle =
    "\nbody { margin: 0 auto; padding: 1rem; max-width: 60rem; color: var(--text); background: var(--back);"
    " font: 1rem/1.5 system-ui, sans-serif }"
    "\nh1 { font-size: 1.5rem } h2 { font-size: 1.2rem; margin-top: 2rem; border-top: 1px solid var(--line);"
    " padding-top: 1rem } h3 { font-size: 1rem }"
    "\nh1, h2, h3, dd, li, summary { overflow-wrap: anywhere }"
    "\na { color: var(--data) } p, dl { max-width: 45rem } dt { color: var(--faint) } dd { margin: 0 0 .4rem }"
    "\nnav ul { padding: 0; display: flex; flex-wrap: wrap; gap: 1rem; list-style: none }"
    "\n:focus-visible { outline: 3px solid var(--strong); outline-offset: 2px }"
    "\n.scroll { overflow-x: auto } .scroll svg.chart { min-width: 38rem } pre { margin: 0; font-size: .85rem }"
    "\ntable { border-collapse: collapse; font-size: .9rem } caption { text-align: left; color: var(--faint);"
    " white-space: nowrap }"
    "\nth, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line);"
    " vertical-align: top } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }"
    "\nsummary { cursor: pointer }";

// The contrast of text and of marks with their background is at least 4.5 in both settings.
constexpr std::string_view kChartStyle =
    "\n:root { color-scheme: light dark; --text: #1d2327; --back: #ffffff; --faint: #5b6670; --line: #c9d1d8;"
    " --data: #2f6f9f; --strong: #b3471d; --low: #6a5fb0; --middle: #8f4a9b; --high: #a8406d }"
    "\n@media (prefers-color-scheme: dark) { :root { --text: #e4e8eb; --back: #14181b; --faint: #9aa6b0;"
    " --line: #3b454d; --data: #74b3e0; --strong: #f0925f; --low: #9da3ea; --middle: #c792dc; --high: #e68aae } }"
    "\nsvg.chart { max-width: 100%; height: auto; background: var(--back); font: 12px system-ui, sans-serif }"
    " .chart text { fill: var(--text) }"
    "\n.chart .faint { fill: var(--faint) } .chart .mark { fill: var(--data); stroke: var(--data) }"
    "\n.chart .strong { fill: var(--strong); stroke: var(--strong) } .chart text.strong { stroke: none }"
    "\n.chart .axis { stroke: var(--line); fill: none }"
    " .chart .line { stroke: var(--data); stroke-width: 2; fill: none }"
    "\n.chart .dots { stroke-width: 4; stroke-linecap: round; fill: none }"
    "\n.chart .c0 { stroke: var(--data) } .chart .c1 { stroke: var(--low) } .chart .c2 { stroke: var(--middle) }"
    " .chart .c3 { stroke: var(--high) } .chart .c4 { stroke: var(--strong) } .chart .cx { stroke: var(--faint) }\n";

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
      out += "\xef\xbf\xbd";  // U+FFFD, for a control character, which cannot stand in a page
    else
      out += c;
  }
  return out;
}

namespace {

/// Returns a part of the page that can be scrolled, also by keyboard. `label` is escaped.
std::string scrolled(const std::string& label, const std::string& content) {
  return formatted("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n{}</div>\n",
                   label, content);
}

}  // namespace

std::string_view chart_style() { return kChartStyle; }

std::string html_page(std::string_view title, std::string_view body) {
  const std::string name = html_text(title);
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n";
  page += formatted(
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{}</title>\n<style>",
      name);
  page += kPageStyle;
  page += kChartStyle;
  page += formatted("</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n", name);
  page += body;
  return page + "</main>\n</body>\n</html>\n";
}

std::string html_drawing(std::string_view label, std::string_view svg) {
  return scrolled(html_text(label), std::string(svg));
}

std::string html_table(std::string_view caption, const std::vector<std::string>& columns, std::size_t texts,
                       const std::vector<std::vector<std::string>>& rows) {
  const std::string name = html_text(caption);
  std::string table = formatted("<table>\n<caption>{}</caption>\n<thead><tr>", name);
  for (std::size_t i = 0; i < columns.size(); ++i)
    table += formatted("<th scope=\"col\"{}{}</th>", i < texts ? ">" : " class=\"number\">", columns[i]);
  table += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    table += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      table += formatted("{}{}</td>", i < texts ? "<td>" : "<td class=\"number\">", row[i]);
    table += "</tr>\n";
  }
  return scrolled(name, table + "</tbody>\n</table>\n");
}

std::string html_listing(std::string_view label, std::string_view text) {
  return scrolled(html_text(label), formatted("<pre>{}</pre>\n", html_text(text)));
}

}  // namespace forestvm::cli
