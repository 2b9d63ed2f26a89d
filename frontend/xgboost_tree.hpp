// Makes a Tree of the columns of an XGBoost tree. In: the columns as the file gives them. Out: nodes with XGBoost's own
// numbers. Single nodes are checked here; check_model checks how they are connected.
#pragma once

#include <cstddef>
#include <string>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/xgboost_document.hpp"

namespace forestvm::frontend {

/// Makes the tree. `path` is its location in the file, for errors. Refuses columns of different lengths, numbers
/// that are not finite, categorical splits without codes, and leaves without vectors in a tree that has vectors.
Result<Tree> tree_of(const XgboostTree& columns, std::size_t number, const std::string& path);

}  // namespace forestvm::frontend
