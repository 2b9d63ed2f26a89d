// The reports of forestvm explain: a page, a drawing, a table or JSON.
#pragma once

#include <string>

#include "cli/explain/explanation.hpp"
#include "cli/explain/plot.hpp"

namespace forestvm::cli {

/// Returns all plots of one kind. There is one importance plot and one beeswarm, a waterfall for each chosen row, and a
/// plot of each kind of dependence for each shown feature.
std::vector<Plot> plots_of(const Explanation& all, PlotKind kind);

/// Returns a page in HTML that needs no other file, no network and no script.
std::string explain_page(const Explanation& all);

/// Returns the numbers of all plots, or of one kind.
std::string explain_json(const Explanation& all, std::optional<PlotKind> kind);

}  // namespace forestvm::cli
