// Makes a Tree of each of CatBoost's two shapes of trees. Splits come first and leaves last, in the order of CatBoost's
// leaf numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// The leaves of a tree, whose number the caller has checked.
struct CatboostLeaves {
  std::span<const double> values;   ///< `width` numbers for each leaf.
  std::span<const double> weights;  ///< Training weight that reached each leaf; may be empty.
  std::uint32_t width = 1;
};

/// A split of a tree that is not oblivious. A child is the number of a later split, or -1 - l for leaf l.
struct CatboostBranch {
  std::uint32_t split = 0;
  std::int32_t left = -1;
  std::int32_t right = -1;
};

/// Makes an oblivious tree: all nodes of a level make the same split, and bit l of a leaf's number is 1 if the split of
/// level l went right. Splits keep their number in Node::payload.
Tree oblivious_tree(std::span<const std::uint32_t> splits, const CatboostLeaves& leaves);

/// Makes a tree of splits, the first of which is the root, and branches.size() + 1 leaves.
Tree branching_tree(std::span<const CatboostBranch> branches, const CatboostLeaves& leaves);

}  // namespace forestvm::frontend
