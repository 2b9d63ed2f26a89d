// Builds array, array4 and reorg: slots in level order. A leaf above the last level is repeated in every slot
// below it, so that a walk which does not look for leaves arrives at the same output.
#include <forestvm/core/layouts.hpp>

#include <algorithm>
#include <bit>

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {
namespace {

std::uint64_t arity(const TreeGroup& group) { return group.tiling.size + std::uint64_t{1}; }

/// Returns the depth to which each tree is padded; interleaved trees are all as deep as the deepest.
template <class View>
std::vector<std::uint32_t> padded_depths(const TiledForest& forest, const TreeGroup& group) {
  std::vector<std::uint32_t> depths;
  for_trees(forest, group,
            [&](const GroupTree& at) { depths.push_back(std::max(at.tiled.depth, group.pad_depth)); });
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

void set_tests(LevelOrderNode& node, const RankTable&, const GroupTree& at, TileChild split) {
  const Test test = at.test(split);
  node = {test.threshold, test.feature};
}

void set_tests(Array4View::Node& node, const RankTable& ranks, const GroupTree& at, TileChild split) {
  const CodedTest coded = ranks.find(at.test(split));
  node.word = std::uint32_t{coded.code} << Array4View::kCodeShift | coded.column;
}

template <unsigned Width>
void set_tests(LevelOrderTile<Width>& node, const RankTable&, const GroupTree& at, TileChild split) {
  const Tile& tile = at.tiled.tiles[split.tile()];
  node = {};
  node.shape = tile.shape;
  for (unsigned i = 0; i < tile.size; ++i) {
    const Test test = test_of(at.tree, at.tiled.nodes[tile.first_node + i]);
    node.thresholds[i] = test.threshold;
    node.features[i] = test.feature;
  }
}

/// The slots of one tree: every `stride`-th slot of the group, from number `first` on.
struct TreeSlots {
  std::size_t first;
  std::size_t stride;
  std::uint64_t count;
};

/// Hands the child that a slot stands for on to the slots below it.
void hand_down(const TiledTree& tiled, std::uint64_t arity, std::uint64_t slot, std::vector<TileChild>& at) {
  const std::uint64_t first = slot * arity + 1;
  if (first >= at.size()) return;
  for (std::uint64_t branch = 0; branch < arity; ++branch) {
    if (at[slot].is_leaf()) {
      at[first + branch] = at[slot];
      continue;
    }
    const Tile& tile = tiled.tiles[at[slot].tile()];
    if (branch <= tile.size) at[first + branch] = tiled.children[tile.first_child + branch];
  }
}

template <class View>
void write_slots(const TiledForest& forest, const TreeGroup& group, const RankTable& ranks,
                 const GroupTree& tree, const TreeSlots& slots, std::vector<typename View::Node>& nodes,
                 BuiltGroup& built) {
  std::vector<TileChild> at(slots.count, TileChild::none());
  at[0] = tree.tiled.root;
  for (std::uint64_t slot = 0; slot < slots.count; ++slot) {
    const std::size_t index = slots.first + slot * slots.stride;
    if (!at[slot].is_leaf()) {
      set_tests(nodes[index], ranks, tree, at[slot]);
    } else {
      const bool none = at[slot].is_none();
      const bool last_level = slot * arity(group) + 1 >= slots.count;
      set_leaf(nodes[index], none ? 0.0f : leaf_output(forest, tree.tree, at[slot].leaf()), last_level);
      if (!none) set_number(built, forest, index, tree.tree, at[slot].leaf());
    }
    hand_down(tree.tiled, arity(group), slot, at);
  }
}

template <class View>
BuiltGroup build_group(const TiledForest& forest, const TreeGroup& group, const RankTable& ranks) {
  BuiltGroup built;
  built.node_count = size<View>(forest, group).slots;
  std::vector<typename View::Node> nodes(built.node_count);
  built.numbers.resize(built.node_count);
  const std::size_t stride = kInterleavesTrees<View> ? group.tree_end - group.tree_begin : 1;
  const std::vector<std::uint32_t> depths = padded_depths<View>(forest, group);
  std::uint64_t end = 0;
  for_trees(forest, group, [&](const GroupTree& tree) {
    const std::uint32_t index = tree.position - group.tree_begin;
    TreeDesc desc = record_of(forest, tree.position, depths[index]);
    desc.node_count = static_cast<std::uint32_t>(level_order_slots(arity(group), desc.depth));
    desc.first_node = kInterleavesTrees<View> ? index : static_cast<std::uint32_t>(end);
    end += desc.node_count;
    write_slots<View>(forest, group, ranks, tree, {desc.first_node, stride, desc.node_count}, nodes, built);
    built.trees.push_back(desc);
  });
  append(built.nodes, nodes);
  return built;
}

}  // namespace

#define FVM_LEVEL_ORDER(Name, View)                                                   \
  Result<LayoutSize> size_##Name(const TiledForest& forest, const TreeGroup& group) { \
    return size<View>(forest, group);                                                 \
  }                                                                                   \
  Result<BuiltGroup> build_##Name(const TiledForest& forest, const TreeGroup& group,  \
                                  const RankTable& ranks) {                           \
    return build_group<View>(forest, group, ranks);                                   \
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
