// A program's forest, whatever its layout, as tiles with explicit children: for tools that read programs. It uses
// only what all views have in common, so that a new layout needs nothing here.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/program.hpp>

namespace forestvm::bytecode {

/// A test. A row goes left if x < threshold or, in a categorical split, if x is not in the set.
struct DecodedTest {
  double threshold;                              ///< The trainer's own: the least number that goes right.
  std::uint32_t feature;                         ///< Feature word without kLeaf.
  const CategoryColumn* category_set = nullptr;  ///< Set of a categorical split, otherwise null.
};

/// A child: a tile's number in its tree, or the complement (~) of a leaf's number in its group.
using DecodedChild = std::int32_t;
constexpr bool is_leaf(DecodedChild child) { return child < 0; }
constexpr std::uint32_t leaf_of(DecodedChild child) { return static_cast<std::uint32_t>(~child); }

/// A tile. In layouts of single nodes it is a node: one test, left and right child.
struct DecodedTile {
  std::uint32_t shape;  ///< Row of the tile shapes; 0 in layouts of single nodes.
  std::vector<DecodedTest> tests;
  std::vector<DecodedChild> children;  ///< Children by branch: one more than tests.
};

struct DecodedTree {
  DecodedChild root;
  std::vector<DecodedTile> tiles;  ///< Tiles, level by level.
};

struct DecodedLeaf {
  float value;
  double wide_value;     ///< The value in the type of the program's scores.
  std::uint32_t number;  ///< The trainer's number of the leaf.
};

struct DecodedGroup {
  std::vector<DecodedTree> trees;
  std::vector<DecodedLeaf> leaves;
};

DecodedGroup decode_group(const Program& program, const GroupDesc& group);

/// Returns the test of a value that is equivalent to a test of its code in a column: a row goes right if its code is
/// above `code`, which is below the column's number of thresholds.
DecodedTest decode_test(const Program& program, std::uint32_t column, std::uint8_t code);

/// Decodes a tree of a group, given by its index in the group: the result has this tree and its leaves alone.
DecodedGroup decode_tree(const Program& program, const GroupDesc& group, std::uint32_t index);

}  // namespace forestvm::bytecode
