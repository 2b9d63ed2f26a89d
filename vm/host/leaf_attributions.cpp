// See leaf_attributions.hpp.
#include "vm/host/leaf_attributions.hpp"

#include <span>

namespace forestvm::host {
namespace {

/// The most terms of zero that a leaf gets, on average over the leaves of a tree: about as many as are added in the
/// time in which the processor recovers from a wrong guess.
constexpr std::uint64_t kMostPadding = 8;

/// Returns the number of terms that each leaf with attributions is to have in a tree whose lists end at `ends`, the
/// first of which begins at ends[0]; 0 if their lengths differ too much.
std::uint32_t common_length(std::span<const std::uint32_t> ends) {
  std::uint32_t longest = 0;
  std::uint64_t lists = 0;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    longest = std::max(longest, ends[i] - ends[i - 1]);
    lists += ends[i] != ends[i - 1];
  }
  const std::uint64_t padded = lists * longest, terms = ends.back() - ends.front();
  return padded - terms <= kMostPadding * lists ? longest : 0;
}

template <class Score>
void load_terms(const Program& program, std::vector<std::uint32_t>& leaves,
                std::vector<LeafTerm<Score>>& terms) {
  const auto attributions = program.attributions();
  const auto nowhere = static_cast<std::uint32_t>(attributed_sums(program.meta()) - 1);
  for (const NumberedLeaves& tree : program.attributed_trees()) {
    const auto ends = program.attributed_leaves().subspan(tree.first_leaf, std::size_t{tree.leaf_count} + 1);
    std::uint32_t length = common_length(ends);
    // Indices of terms have 32 bits. The terms of later trees must fit too, at least without zeros.
    const std::size_t others = attributions.size() - ends.back();
    if (terms.size() + std::uint64_t{tree.leaf_count} * length + others > UINT32_MAX) length = 0;
    for (std::size_t i = 1; i < ends.size(); ++i) {
      leaves.push_back(static_cast<std::uint32_t>(terms.size()));
      for (std::uint32_t a = ends[i - 1]; a < ends[i]; ++a)
        terms.push_back({static_cast<Score>(attributions[a].value), attributions[a].index});
      if (ends[i] == ends[i - 1]) continue;  // no row reaches it
      terms.resize(std::max(terms.size(), std::size_t{leaves.back()} + length), {0, nowhere});
    }
  }
  leaves.push_back(static_cast<std::uint32_t>(terms.size()));
}

}  // namespace

[[gnu::cold]] LeafAttributions::LeafAttributions(const Program& program) {
  if (program.attribution_base().empty()) return;
  if (program.meta().score_type == ScalarType::Float64)
    load_terms(program, leaves, doubles);
  else
    load_terms(program, leaves, singles);
}

}  // namespace forestvm::host
