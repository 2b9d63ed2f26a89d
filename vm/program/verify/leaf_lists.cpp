// The verifier's rules for lists of records for each leaf.
#include <algorithm>

#include <forestvm/internal/formatted.hpp>

#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {

Result<void> verify_leaf_lists(const Program& program, const LeafLists& lists) {
  const auto& [trees, leaves, records, trees_name, leaves_name, records_name] = lists;
  if (trees.size() != program.meta().num_trees)
    return refused(formatted("{} section", trees_name), "{} records, but {} trees", trees.size(),
                   program.meta().num_trees);
  if (leaves.empty() || leaves[0] != 0 || leaves.back() != records)
    return refused(formatted("{} section", leaves_name), "it does not begin and end with the {}",
                   records_name);
  const auto descends = std::is_sorted_until(leaves.begin(), leaves.end());
  if (descends != leaves.end())
    return record_error(leaves_name, static_cast<std::size_t>(descends - leaves.begin()),
                        "it is below the record before it");
  for (std::size_t t = 0; t < trees.size(); ++t)
    if (std::uint64_t{trees[t].first_leaf} + trees[t].leaf_count >= leaves.size())
      return record_error(trees_name, t, formatted("its leaves leave the {} section", leaves_name));
  return {};
}

}  // namespace forestvm::bytecode
