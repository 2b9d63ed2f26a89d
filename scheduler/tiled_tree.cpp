// Tree -> tiles.
#include "scheduler/tiled_tree.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <boost/container/static_vector.hpp>

namespace forestvm::scheduler {
namespace {

template <class T>
using TileVector = boost::container::static_vector<T, kMaxTileSize + 1>;

class Cutter {
 public:
  Cutter(const Tree& tree, const Tiling& tiling, ShapeTable& shapes)
      : tree_(tree), tiling_(tiling), shapes_(shapes) {}

  TiledTree run() {
    result_.shallowest = UINT32_MAX;
    if (is_leaf(0) && tiling_.size == 1) {
      result_.root = TileChild::leaf(0);
      result_.leaves = 1;
      result_.shallowest = 0;
      return std::move(result_);
    }
    result_.root = TileChild::tile(0);
    if (tiling_.size == 1) {
      cut_into_nodes();
      return std::move(result_);
    }
    std::vector<std::int32_t> roots{is_leaf(0) ? kNoNode : 0}, next;
    while (!roots.empty()) {
      ++result_.depth;
      next.clear();
      first_of_next_level_ = static_cast<std::uint32_t>(result_.tiles.size() + roots.size());
      for (const std::int32_t root : roots) add_tile(root, next);
      roots.swap(next);
    }
    return std::move(result_);
  }

 private:
  const Node& node(std::int32_t number) const { return tree_.nodes[static_cast<std::size_t>(number)]; }
  bool is_leaf(std::int32_t number) const { return node(number).kind == NodeKind::Leaf; }

  /// Makes every split a tile. The list of tiles is the queue of splits to visit.
  void cut_into_nodes() {
    const std::size_t most = tree_.nodes.size() / 2;
    result_.tiles.reserve(most);
    result_.nodes.reserve(most);
    result_.children.reserve(2 * most);
    result_.nodes.push_back(0);
    std::size_t next_level = 0;
    for (std::uint32_t i = 0; i < result_.nodes.size(); ++i) {
      if (i == next_level) {
        ++result_.depth;
        next_level = result_.nodes.size();
      }
      result_.tiles.push_back({i, 2 * i, 1, 0});
      const Node& split = node(result_.nodes[i]);
      for (const std::int32_t child : {split.left, split.right}) {
        if (is_leaf(child)) {
          add_leaf(child);
        } else {
          result_.children.push_back(TileChild::tile(static_cast<std::uint32_t>(result_.nodes.size())));
          result_.nodes.push_back(child);
        }
      }
    }
  }

  void add_leaf(std::int32_t leaf) {
    result_.children.push_back(TileChild::leaf(leaf));
    result_.shallowest = std::min(result_.shallowest, result_.depth);
    ++result_.leaves;
  }

  /// Returns the splits of the tile below `root`, parents first. The choice among the frontier's splits
  /// matters to speed alone: with the likeliest, most walks pass through the fewest tiles.
  TileVector<std::int32_t> grow(std::int32_t root) const {
    TileVector<std::int32_t> tile{root};
    boost::container::static_vector<std::int32_t, std::size_t{2} * kMaxTileSize> frontier;
    const auto add_children = [&](std::int32_t parent) {
      if (parent == kNoNode) return;
      for (const std::int32_t child : {node(parent).left, node(parent).right})
        if (!is_leaf(child)) frontier.push_back(child);
    };
    add_children(root);
    while (tile.size() < tiling_.size && !frontier.empty()) {
      const auto likelier = [&](std::int32_t a, std::int32_t b) { return node(a).cover < node(b).cover; };
      const auto chosen = tiling_.by_probability
                              ? std::max_element(frontier.begin(), frontier.end(), likelier)
                              : frontier.begin();
      const std::int32_t added = *chosen;
      frontier.erase(chosen);
      tile.push_back(added);
      add_children(added);
    }
    return tile;
  }

  /// Sorts a tile's splits level by level, so that tiles of one form have one shape.
  TileVector<std::int32_t> in_level_order(const TileVector<std::int32_t>& tile) const {
    TileVector<std::int32_t> ordered{tile.front()};
    for (std::size_t i = 0; i < ordered.size() && ordered[i] != kNoNode; ++i)
      for (const std::int32_t child : {node(ordered[i]).left, node(ordered[i]).right})
        if (std::find(tile.begin(), tile.end(), child) != tile.end()) ordered.push_back(child);
    return ordered;
  }

  void add_tile(std::int32_t root, std::vector<std::int32_t>& next) {
    const TileVector<std::int32_t> nodes = in_level_order(grow(root));
    TileShape shape{};
    shape.size = static_cast<std::uint8_t>(nodes.size());
    Tile tile{};
    tile.size = shape.size;
    tile.first_node = static_cast<std::uint32_t>(result_.nodes.size());
    tile.first_child = static_cast<std::uint32_t>(result_.children.size());
    std::uint8_t exits = 0;
    const auto entry = [&](std::int32_t child) {
      const auto inside = std::find(nodes.begin() + 1, nodes.end(), child);
      if (inside != nodes.end()) return static_cast<std::uint8_t>(inside - nodes.begin());
      add_child(child, next);
      return static_cast<std::uint8_t>(kTileExit | exits++);
    };
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      // Both branches of a test that decides nothing lead to the one leaf there is.
      shape.left[i] = entry(nodes[i] == kNoNode ? 0 : node(nodes[i]).left);
      shape.right[i] = entry(nodes[i] == kNoNode ? 0 : node(nodes[i]).right);
    }
    result_.nodes.insert(result_.nodes.end(), nodes.begin(), nodes.end());
    tile.shape = shapes_.row(shape);
    result_.tiles.push_back(tile);
  }

  void add_child(std::int32_t child, std::vector<std::int32_t>& next) {
    if (is_leaf(child)) return add_leaf(child);
    result_.children.push_back(
        TileChild::tile(first_of_next_level_ + static_cast<std::uint32_t>(next.size())));
    next.push_back(child);
  }

  const Tree& tree_;
  const Tiling& tiling_;
  ShapeTable& shapes_;
  TiledTree result_{};
  std::uint32_t first_of_next_level_ = 0;
};

}  // namespace

std::uint16_t ShapeTable::row(const TileShape& shape) {
  const auto [row, added] =
      rows_.try_emplace(std::bit_cast<std::array<std::uint8_t, sizeof(TileShape)>>(shape),
                        static_cast<std::uint16_t>(shapes_.size()));
  if (added) shapes_.push_back(shape);
  return row->second;
}

TiledTree cut_into_tiles(const Tree& tree, const Tiling& tiling, ShapeTable& shapes) {
  return Cutter(tree, tiling, shapes).run();
}

}  // namespace forestvm::scheduler
