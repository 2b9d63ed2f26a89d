// See leaf_functions.hpp.
#include "vm/host/leaf_functions.hpp"

#include <algorithm>

namespace forestvm::host {

LeafFunctions::LeafFunctions(const Program& program) : functions_(program.section_LeafFunctions()) {
  const auto terms = program.section_LeafTerms();
  for (const LeafTerm& term : terms) features_.push_back(term.feature);
  std::sort(features_.begin(), features_.end());
  features_.erase(std::unique(features_.begin(), features_.end()), features_.end());
  terms_.reserve(terms.size());
  for (const LeafTerm& term : terms) {
    const auto at = std::lower_bound(features_.begin(), features_.end(), term.feature);
    terms_.push_back({term.coefficient, static_cast<std::size_t>(at - features_.begin())});
  }
}

}  // namespace forestvm::host
