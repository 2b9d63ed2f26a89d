// A program's forest, whatever its layout, as tiles with explicit children: for tools that read programs.
// Written against what all views have in common, so that a new layout needs nothing here.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/program.hpp>

namespace forestvm::bytecode {

/// `x < threshold` goes left; or, of a categorical split, x that is in no set.
struct DecodedTest {
  float threshold;
  std::uint32_t feature;                         ///< feature word without kLeaf
  const CategoryColumn* category_set = nullptr;  ///< of a categorical split
};

/// A child: a tile's number in its tree, or ~ a leaf's number in its group.
using DecodedChild = std::int32_t;
constexpr bool is_leaf(DecodedChild child) { return child < 0; }
constexpr std::uint32_t leaf_of(DecodedChild child) { return static_cast<std::uint32_t>(~child); }

/// In layouts of single nodes a tile is a node: one test, left and right child.
struct DecodedTile {
  std::uint32_t shape;  ///< row of the tile shapes; 0 in layouts of single nodes
  std::vector<DecodedTest> tests;
  std::vector<DecodedChild> children;  ///< by way out: one more than tests
};

struct DecodedTree {
  DecodedChild root;
  std::vector<DecodedTile> tiles;  ///< level by level
};

struct DecodedLeaf {
  float value;
  std::uint32_t number;  ///< the trainer's
};

struct DecodedGroup {
  std::vector<DecodedTree> trees;
  std::vector<DecodedLeaf> leaves;
};

DecodedGroup decode_group(const Program& program, const GroupDesc& group);

}  // namespace forestvm::bytecode
