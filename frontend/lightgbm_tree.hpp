// Makes a Tree of the entries of a LightGBM tree. LightGBM numbers splits and leaves apart. In the Tree the splits come
// first, with their numbers, and then the leaves: with s splits, leaf l is node s + l.
#pragma once

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/lightgbm_text.hpp"

namespace forestvm::frontend {

/// Makes the tree. Refuses columns of another length than num_leaves says and numbers out of range. check_model
/// checks how the nodes are connected.
Result<Tree> tree_of(const LightgbmTree& entries);

}  // namespace forestvm::frontend
