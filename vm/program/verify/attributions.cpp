// The verifier's rules for what leaves attribute to features.
#include <cmath>

#include <forestvm/internal/formatted.hpp>

#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {
namespace {

Result<void> verify_numbers(const Program& program, std::uint64_t width) {
  const auto attributions = program.attributions();
  for (std::size_t i = 0; i < attributions.size(); ++i) {
    const Attribution& attribution = attributions[i];
    if (attribution.index >= width ||
        attribution.index % (program.meta().num_features + std::uint64_t{1}) == program.meta().num_features)
      return record_error("attributions", i, "its feature does not exist");
    if (!std::isfinite(attribution.value)) return record_error("attributions", i, "its number is not finite");
    if (attribution.reserved != 0) return record_error("attributions", i, "a reserved byte is not zero");
  }
  return {};
}

}  // namespace

Result<void> verify_attributions(const Program& program) {
  const ProgramMeta& meta = program.meta();
  const auto base = program.attribution_base();
  const auto trees = program.attributed_trees();
  if (base.empty()) {
    if (trees.empty() && program.attributed_leaves().empty() && program.attributions().empty()) return {};
    return refused("attribution_base section", "it is empty, but leaves have attributions");
  }
  const std::uint64_t width = std::uint64_t{meta.num_outputs} * (std::uint64_t{meta.num_features} + 1);
  if (width > kMaxContributions)
    return refused("meta section", "{} contributions of a row, at most {}", width, kMaxContributions);
  // The means of the trees alone are absent in older files, whose calls take no margins.
  if (base.size() != meta.num_outputs &&
      (meta.takes_margins == 0 || base.size() != 2 * std::size_t{meta.num_outputs}))
    return refused("attribution_base section", "{} numbers, but {} outputs", base.size(), meta.num_outputs);
  for (std::size_t k = 0; k < base.size(); ++k)
    if (!std::isfinite(base[k])) return record_error("attribution_base", k, "it is not finite");
  FVM_TRY(verify_leaf_lists(program, {trees, program.attributed_leaves(), program.attributions().size(),
                                      "attributed_trees", "attributed_leaves", "attributions"}));
  // The host goes through all leaves once to prepare their terms, so trees share none.
  std::size_t leaves = 0;
  for (std::size_t t = 0; t < trees.size(); ++t) {
    if (trees[t].first_leaf != leaves)
      return record_error("attributed_trees", t, "its leaves do not follow those of the tree before it");
    leaves += trees[t].leaf_count;
  }
  return verify_numbers(program, width);
}

}  // namespace forestvm::bytecode
