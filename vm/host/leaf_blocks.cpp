// See leaf_blocks.hpp.
#include "vm/host/leaf_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace forestvm::host {
namespace {

/// The sizes of blocks are such that at least this share of the functions fits.
constexpr double kFitting = 0.9;

}  // namespace

LeafBlocks::LeafBlocks(const LeafFunctions& functions) {
  const LeafOutputs outputs = functions.outputs();
  const std::span all(outputs.functions, outputs.count);
  if (all.empty()) return;
  std::vector<std::size_t> needed;
  for (const LeafFunction& function : all) needed.push_back((function.term_count + kTerms - 1) / kTerms);
  const auto fitting =
      needed.begin() + static_cast<std::ptrdiff_t>(kFitting * static_cast<double>(needed.size() - 1));
  std::nth_element(needed.begin(), fitting, needed.end());
  width_ = std::max<std::size_t>(*fitting, 1);
  filled_ = functions.features().empty() ? 0 : width_;
  count_ = static_cast<double>(all.size());
  blocks_.resize(all.size() * width_);
  for (std::size_t f = 0; f < all.size(); ++f) {
    const std::span terms(outputs.terms + all[f].first_term, all[f].term_count);
    Block* const first = &blocks_[f * width_];
    for (std::size_t i = 0; i < width_ * kTerms; ++i) {
      Block& block = first[i / kTerms];
      block.coefficients[i % kTerms] = i < terms.size() ? terms[i].coefficient : 0;
      // Terms that fill a block read a value that the function reads anyway: another value could be missing where
      // the function's values are not.
      block.indices[i % kTerms] = terms.empty() ? 0 : terms[std::min(i, terms.size() - 1)].index;
    }
    const bool fits = terms.size() <= width_ * kTerms;
    first->constant = fits ? all[f].constant : std::numeric_limits<double>::quiet_NaN();
    first->value = all[f].value;
  }
}

double LeafBlocks::rare_output(const LeafFunctions& functions, double number, const double* values) const {
  const Block* const first = blocks_of(number);
  const bool has_terms = first->coefficients[0] != 0;
  for (std::size_t i = 0; i < filled_ && has_terms; ++i)
    for (const std::uint32_t index : first[i].indices)
      if (std::isnan(values[index])) return first->value;
  return leaf_output(functions.outputs(), number,
                     [values](const IndexedTerm& term) { return values[term.index]; });
}

}  // namespace forestvm::host
