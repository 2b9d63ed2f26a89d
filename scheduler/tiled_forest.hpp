// The tiled forest: the model's trees as the program will hold them. Which trees lie together, in which
// layout, padded to which depth. (Treebeard's HIR after tiling, padding and reordering; tiles have one node
// until tileTree is lowered.) Printable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::scheduler {

/// What padding and layouts need to know of a tree.
struct TreeShape {
  std::uint32_t nodes = 0;  ///< reachable ones
  std::uint32_t leaves = 0;
  std::uint32_t depth = 0;       ///< hops to the deepest leaf
  std::uint32_t shallowest = 0;  ///< hops to the nearest leaf
};

TreeShape shape_of(const Tree& tree);

/// Trees [tree_begin, tree_end) of the model in one layout.
struct TreeGroup {
  Layout layout = Layout::Array;
  std::uint32_t tree_begin = 0;
  std::uint32_t tree_end = 0;
  std::uint32_t pad_depth = 0;  ///< every walk can take this many hops without a leaf check

  bool operator==(const TreeGroup&) const = default;
};

struct TiledForest {
  std::vector<TreeShape> shapes;  ///< of each tree of the model
  std::vector<TreeGroup> groups;

  /// Number of the group, which is added if it is new.
  std::uint32_t group(const TreeGroup& wanted);
};

/// Slots that a tree takes in a group's layout.
std::uint64_t slots(const TreeGroup& group, const TreeShape& shape);

/// Nodes of a group's trees, and the slots and bytes they take.
struct GroupSize {
  std::uint64_t nodes = 0;
  std::uint64_t slots = 0;
  std::uint64_t bytes = 0;
};
GroupSize size_of(const TiledForest& forest, const TreeGroup& group);

/// True if the array layout does not waste memory on these trees: at most 4 slots a node and 1 GiB.
bool array_fits(const GroupSize& size);

std::string print(const TiledForest& forest);

}  // namespace forestvm::scheduler
