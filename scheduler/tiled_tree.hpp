// A tree cut into tiles, which the layouts' builders read. A tile is a connected part of up to 8 splits that
// are tested at once; with tiles of one node this is the tree itself. Source: Treebeard (MICRO 2022).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/model.hpp>

#include "scheduler/loop_tree.hpp"

namespace forestvm::scheduler {

/// The target of an exit of a tile: the number of another tile, or a leaf.
struct TileChild {
  std::int32_t value;

  static TileChild tile(std::uint32_t number) { return {static_cast<std::int32_t>(number)}; }
  static TileChild leaf(std::int32_t node) { return {~node}; }
  /// Returns the target of an exit that a tile does not have. It counts as a leaf.
  static TileChild none() { return {INT32_MIN}; }
  bool is_none() const { return value == INT32_MIN; }
  bool is_leaf() const { return value < 0; }
  std::uint32_t tile() const { return static_cast<std::uint32_t>(value); }
  std::int32_t leaf() const { return ~value; }  ///< number of the leaf's node in the model's tree
};

/// Stands for a test that decides nothing, in the tile above a root that is a leaf.
inline constexpr std::int32_t kNoNode = -1;

struct Tile {
  std::uint32_t first_node;
  std::uint32_t first_child;
  std::uint16_t size;
  std::uint16_t shape;  ///< row of its shape in the shape table; 0 if tiles have one node
};

struct TiledTree {
  TileChild root;
  std::vector<Tile> tiles;          ///< tiles level by level: children after their parents, siblings together
  std::vector<std::int32_t> nodes;  ///< numbers of the tiles' splits in the model's tree
  std::vector<TileChild> children;  ///< targets of the tiles' exits: one more than a tile has nodes
  std::uint32_t leaves = 0;
  std::uint32_t depth = 0;       ///< steps to the deepest leaf, counted in tiles
  std::uint32_t shallowest = 0;  ///< steps to the nearest leaf

  /// Returns the number of splits and leaves.
  std::uint64_t model_nodes() const { return nodes.size() + std::uint64_t{leaves}; }
  /// Returns the number of tiles and leaves.
  std::uint64_t size() const { return tiles.size() + std::uint64_t{leaves}; }
};

/// The distinct shapes of a program's tiles. The first is the shape of a leaf.
class ShapeTable {
 public:
  std::uint16_t row(const TileShape& shape);
  const std::vector<TileShape>& shapes() const { return shapes_; }

 private:
  std::vector<TileShape> shapes_{TileShape{}};
  /// The row of each shape, by the shape's bytes.
  std::map<std::array<std::uint8_t, sizeof(TileShape)>, std::uint16_t> rows_;
};

/// Cuts a tree into tiles. For tilings by probability every split's cover must be known.
TiledTree cut_into_tiles(const Tree& tree, const Tiling& tiling, ShapeTable& shapes);

}  // namespace forestvm::scheduler
