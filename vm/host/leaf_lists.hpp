// Reads lists of records of the leaves that a row reaches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/core/leaf_lists.hpp>

namespace forestvm::host {

/// Calls visit(begin, end) with the indices of the records of the leaf that a row reaches in each tree. `numbers` has
/// the leaves' numbers, tree after tree.
template <class Visit>
void for_leaf_lists(std::span<const NumberedLeaves> trees, std::span<const std::uint32_t> leaves,
                    const std::int32_t* numbers, const Visit& visit) {
  for (std::size_t t = 0; t < trees.size(); ++t) {
    const LeafList list = leaf_list(trees[t], leaves.data(), numbers[t]);
    visit(list.begin, list.end);
  }
}

}  // namespace forestvm::host
