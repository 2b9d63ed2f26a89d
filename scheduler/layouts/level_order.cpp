// Builds array, array4 and reorg: slots in level order. A leaf above the last level is repeated in every slot
// below it, so that a walk which does not look for leaves arrives at the same output.
#include <forestvm/core/layouts.hpp>

#include <algorithm>
#include <bit>

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {
namespace {

std::uint64_t arity(const TreeGroup& group) { return group.tiling.size + std::uint64_t{1}; }

/// The depths to which the trees are padded; trees that are interleaved are all as deep as the deepest.
template <class View>
std::vector<std::uint32_t> padded_depths(const TiledForest& forest, const TreeGroup& group) {
  std::vector<std::uint32_t> depths;
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    depths.push_back(std::max(forest.tree(group.tiling, t).depth, group.pad_depth));
  if constexpr (kInterleavesTrees<View>)
    std::fill(depths.begin(), depths.end(), *std::max_element(depths.begin(), depths.end()));
  return depths;
}

template <class View>
LayoutSize size(const TiledForest& forest, const TreeGroup& group) {
  constexpr std::uint64_t kTooMany = UINT64_MAX / (2 * sizeof(typename View::Node));
  LayoutSize size;
  for (const std::uint32_t depth : padded_depths<View>(forest, group)) {
    const std::uint64_t slots = level_order_slots(arity(group), depth);
    size.slots = slots > kTooMany - size.slots ? kTooMany : size.slots + slots;
  }
  size.bytes = size.slots * sizeof(typename View::Node);
  return size;
}

void set_leaf(LevelOrderNode& node, float value, bool) { node = {value, kLeaf}; }

void set_leaf(Array4View::Node& node, float value, bool last_level) {
  node.word =
      last_level ? std::bit_cast<std::uint32_t>(value) : std::uint32_t{kNeverRight} << Array4View::kCodeShift;
}

template <unsigned Width>
void set_leaf(LevelOrderTile<Width>& node, float value, bool) {
  node = {};
  node.thresholds[0] = value;
  node.shape = kLeaf;
}

void set_tests(LevelOrderNode& node, const RankTable&, const Tree& tree, const TiledTree& tiled,
               const Tile& tile) {
  const Test test = test_of(tree, tiled.nodes[tile.first_node]);
  node = {test.threshold, test.feature};
}

void set_tests(Array4View::Node& node, const RankTable& ranks, const Tree& tree, const TiledTree& tiled,
               const Tile& tile) {
  const CodedTest coded = ranks.find(test_of(tree, tiled.nodes[tile.first_node]));
  node.word = std::uint32_t{coded.code} << Array4View::kCodeShift | coded.column;
}

template <unsigned Width>
void set_tests(LevelOrderTile<Width>& node, const RankTable&, const Tree& tree, const TiledTree& tiled,
               const Tile& tile) {
  node = {};
  node.shape = tile.shape;
  for (unsigned i = 0; i < tile.size; ++i) {
    const Test test = test_of(tree, tiled.nodes[tile.first_node + i]);
    node.thresholds[i] = test.threshold;
    node.features[i] = test.feature;
  }
}

/// Places one tree's slots, `stride` apart.
template <class View>
class TreePlacer {
 public:
  TreePlacer(const TiledForest& forest, const TreeGroup& group, std::uint32_t position)
      : forest_(forest),
        tree_(forest.model_tree(position)),
        tiled_(forest.tree(group.tiling, position)),
        arity_(arity(group)) {}

  void place(std::vector<typename View::Node>& nodes, BuiltGroup& built, std::size_t first,
             std::size_t stride, std::uint64_t count) {
    std::vector<TileChild> at(count, TileChild::none());
    at[0] = tiled_.root;
    for (std::uint64_t slot = 0; slot < count; ++slot) {
      const std::size_t place = first + slot * stride;
      typename View::Node& node = nodes[place];
      if (at[slot].is_leaf()) {
        const bool none = at[slot].is_none();
        set_leaf(node, none ? 0.0f : leaf_output(forest_, tree_, at[slot].leaf()),
                 slot * arity_ + 1 >= count);
        if (!none) set_number(built, forest_, place, tree_, at[slot].leaf());
      } else {
        set_tests(node, forest_.ranks, tree_, tiled_, tiled_.tiles[at[slot].tile()]);
      }
      hand_down(at, slot, count);
    }
  }

 private:
  void hand_down(std::vector<TileChild>& at, std::uint64_t slot, std::uint64_t count) const {
    const std::uint64_t first = slot * arity_ + 1;
    if (first >= count) return;
    for (std::uint64_t way = 0; way < arity_; ++way) {
      if (at[slot].is_leaf()) {
        at[first + way] = at[slot];
        continue;
      }
      const Tile& tile = tiled_.tiles[at[slot].tile()];
      if (way <= tile.size) at[first + way] = tiled_.children[tile.first_child + way];
    }
  }

  const TiledForest& forest_;
  const Tree& tree_;
  const TiledTree& tiled_;
  std::uint64_t arity_;
};

template <class View>
BuiltGroup build_group(const TiledForest& forest, const TreeGroup& group) {
  BuiltGroup built;
  built.node_count = size<View>(forest, group).slots;
  std::vector<typename View::Node> nodes(built.node_count);
  built.numbers.resize(built.node_count);
  const std::uint32_t trees = group.tree_end - group.tree_begin;
  const std::vector<std::uint32_t> depths = padded_depths<View>(forest, group);
  std::uint64_t end = 0;
  for (std::uint32_t t = 0; t < trees; ++t) {
    const std::uint32_t position = group.tree_begin + t;
    TreeDesc desc = record_of(forest, position, depths[t]);
    desc.node_count = static_cast<std::uint32_t>(level_order_slots(arity(group), desc.depth));
    desc.first_node = kInterleavesTrees<View> ? t : static_cast<std::uint32_t>(end);
    end += desc.node_count;
    TreePlacer<View>(forest, group, position)
        .place(nodes, built, desc.first_node, kInterleavesTrees<View> ? trees : 1, desc.node_count);
    built.trees.push_back(desc);
  }
  append(built.nodes, nodes);
  return built;
}

}  // namespace

#define FVM_LEVEL_ORDER(Name, View)                                                                       \
  LayoutSize size_##Name(const TiledForest& forest, const TreeGroup& group) {                             \
    return size<View>(forest, group);                                                                     \
  }                                                                                                       \
  std::optional<std::string> misfit_##Name(const TiledForest&, const TreeGroup&) { return std::nullopt; } \
  BuiltGroup build_##Name(const TiledForest& forest, const TreeGroup& group) {                            \
    return build_group<View>(forest, group);                                                              \
  }
FVM_LEVEL_ORDER(Array, ArrayView)
FVM_LEVEL_ORDER(Array4, Array4View)
FVM_LEVEL_ORDER(Reorg, ReorgView)
FVM_LEVEL_ORDER(ArrayTiles4, ArrayTilesView<4>)
FVM_LEVEL_ORDER(ArrayTiles8, ArrayTilesView<8>)
FVM_LEVEL_ORDER(ReorgTiles4, ReorgTilesView<4>)
FVM_LEVEL_ORDER(ReorgTiles8, ReorgTilesView<8>)
#undef FVM_LEVEL_ORDER

}  // namespace forestvm::scheduler
