// Makes pages in HTML for people. A page is one file without scripts, whose colours follow the reader's light or dark
// setting.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forestvm::cli {

/// Returns the text with the characters that HTML and XML reserve, and control characters, written as references.
std::string html_text(std::string_view text);

/// Returns the style sheet of drawings, as it stands in a page.
std::string_view chart_style();

/// Returns a page with this title and body. The body may use the classes that html.cpp styles: `chart` (a drawing), and
/// in it `mark` (bars of the data), `line` (its lines), `strong` (what the drawing points out), `faint` (labels of
/// lesser weight), `axis`, and `dots` (ends of lines without length) in the colours `c0` to `c4`, or `cx` for missing
/// values; `number` (a cell of a table).
std::string html_page(std::string_view title, std::string_view body);

/// Returns a table whose cells are HTML. Columns after the first `texts` hold numbers, which are aligned to the right.
std::string html_table(std::string_view caption, const std::vector<std::string>& columns, std::size_t texts,
                       const std::vector<std::vector<std::string>>& rows);

/// Returns a drawing in a part of the page that can be scrolled where the window is narrow, so that its texts need not
/// shrink.
std::string html_drawing(std::string_view label, std::string_view svg);

/// Returns preformatted text that can be scrolled by keyboard; `label` is its name for screen readers.
std::string html_listing(std::string_view label, std::string_view text);

}  // namespace forestvm::cli
