// The tiled forest: the model's trees as the program will hold them: their order, their groups, and each group's
// layout, tiling and padding (Treebeard's HIR after tiling, padding and reordering). It can be printed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "scheduler/tiled_tree.hpp"

namespace forestvm::scheduler {

/// The size and depth of a tree, counted in nodes.
struct TreeShape {
  std::uint32_t nodes = 0;  ///< number of nodes that a walk can reach
  std::uint32_t leaves = 0;
  std::uint32_t depth = 0;       ///< steps to the deepest leaf
  std::uint32_t shallowest = 0;  ///< steps to the nearest leaf
};

TreeShape shape_of(const Tree& tree);

/// A group: the trees at positions [tree_begin, tree_end) of the program's order, in one layout.
struct TreeGroup {
  Layout layout = Layout::Array;
  Tiling tiling{};
  std::uint32_t tree_begin = 0;
  std::uint32_t tree_end = 0;
  /// Number of steps that every walk can take without a leaf check because leaves are repeated below themselves.
  std::uint32_t pad_depth = 0;

  bool operator==(const TreeGroup&) const = default;
};

/// The trees that have been cut into tiles, and the shapes of these tiles. All plans of a schedule share them.
struct CutTrees {
  std::map<Tiling, std::vector<std::optional<TiledTree>>> trees;  ///< by the trees' numbers in the model
  ShapeTable shapes;
};

class TiledForest {
 public:
  TiledForest(const Model& model, CutTrees& cut) : model_(&model), cut_(&cut) {}

  std::vector<TreeGroup> groups;
  std::vector<std::uint32_t> order;  ///< the trees' numbers in the model, in the program's order

  /// Returns the number of a group; adds it if it is new.
  std::uint32_t group(const TreeGroup& wanted);

  const Tree& model_tree(std::uint32_t position) const { return model_->trees[order[position]]; }

  /// Cuts the trees at positions [begin, end) into tiles, except trees that are cut already.
  void cut(const Tiling& tiling, std::uint32_t begin, std::uint32_t end);

  /// Returns the tree at a position, in tiles. It must have been cut.
  const TiledTree& tree(const Tiling& tiling, std::uint32_t position) const;

  const std::vector<TileShape>& shapes() const { return cut_->shapes.shapes(); }
  const Model& model() const { return *model_; }

 private:
  const Model* model_;
  CutTrees* cut_;
};

/// The splits and leaves of a group's trees, and the slots and bytes that they take.
struct GroupSize {
  std::uint64_t nodes = 0;
  std::uint64_t slots = 0;
  std::uint64_t bytes = 0;
};
/// Returns the size of a group. Refuses, with the reason, trees that the layout cannot hold.
Result<GroupSize> size_of(const TiledForest& forest, const TreeGroup& group);

/// The most slots for each node of a group's trees; a layout that needs more is refused. kArrayPadding is for the
/// array layout, kMaxPadding for layouts that pad more by their nature (level order in tiles, and trees all as deep
/// as the deepest).
inline constexpr std::uint64_t kArrayPadding = 4;
inline constexpr std::uint64_t kMaxPadding = 32;
inline constexpr std::uint64_t kMaxGroupBytes = std::uint64_t{1} << 30;

std::string print(const TiledForest& forest);

}  // namespace forestvm::scheduler
