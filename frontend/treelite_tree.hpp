// Makes a Tree of the columns of a Treelite tree.
#pragma once

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/treelite_checkpoint.hpp"

namespace forestvm::frontend {

/// Makes the tree; `leaf_width` is the number of values that each leaf must have. Refuses, with the byte at which the
/// tree begins, node kinds and comparisons that Model does not have, and leaves of another width. check_model checks
/// how the nodes are connected.
Result<Tree> tree_of(const TreeliteTree& columns, std::uint32_t leaf_width);

}  // namespace forestvm::frontend
