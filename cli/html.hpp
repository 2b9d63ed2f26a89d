// Pages in HTML for people: one file without scripts, whose colours follow the reader's light or dark setting.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forestvm::cli {

/// Returns the text with the characters that HTML and XML reserve, and control characters, written as references.
std::string html_text(std::string_view text);

/// Returns a page with this title and body. The body may use the classes that html.cpp styles: `chart` (a drawing), `mark`
/// (bars and lines of the data), `strong` (what a drawing points out), `axis`, `number` (cells of a table).
std::string html_page(std::string_view title, std::string_view body);

/// Returns a table. The rows' cells are HTML; those of all columns but the first `texts` are numbers, set to the right.
std::string html_table(std::string_view caption, const std::vector<std::string>& columns, std::size_t texts,
                       const std::vector<std::vector<std::string>>& rows);

/// Returns preformatted text that can be scrolled by keyboard; `label` names it for readers that speak.
std::string html_listing(std::string_view label, std::string_view text);

}  // namespace forestvm::cli
