// Shapes, sizes and the printed form of the tiled forest.
#include "scheduler/tiled_forest.hpp"

#include <algorithm>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {

TreeShape shape_of(const Tree& tree) {
  TreeShape shape;
  shape.shallowest = UINT32_MAX;
  std::vector<std::int32_t> level{0}, next;
  for (std::uint32_t depth = 0; !level.empty(); ++depth) {
    shape.depth = depth;
    shape.nodes += static_cast<std::uint32_t>(level.size());
    next.clear();
    for (const std::int32_t at : level) {
      const Node& node = tree.nodes[static_cast<std::size_t>(at)];
      if (node.kind == NodeKind::Leaf) {
        ++shape.leaves;
        shape.shallowest = std::min(shape.shallowest, depth);
      } else {
        next.push_back(node.left);
        next.push_back(node.right);
      }
    }
    level.swap(next);
  }
  return shape;
}

std::uint32_t TiledForest::group(const TreeGroup& wanted) {
  const auto found = std::find(groups.begin(), groups.end(), wanted);
  if (found == groups.end()) {
    groups.push_back(wanted);
    return static_cast<std::uint32_t>(groups.size() - 1);
  }
  return static_cast<std::uint32_t>(found - groups.begin());
}

void TiledForest::cut(const Tiling& tiling, std::uint32_t begin, std::uint32_t end) {
  auto& trees = cut_->trees[tiling];
  trees.resize(model_->trees.size());
  for (std::uint32_t t = begin; t < end; ++t)
    if (std::optional<TiledTree>& tree = trees[order[t]]; !tree)
      tree = cut_into_tiles(model_tree(t), tiling, cut_->shapes);
}

const TiledTree& TiledForest::tree(const Tiling& tiling, std::uint32_t position) const {
  return cut_->trees.at(tiling)[order[position]].value();
}

Result<GroupSize> size_of(const TiledForest& forest, const TreeGroup& group) {
  GroupSize size;
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    size.nodes += forest.tree(group.tiling, t).model_nodes();
  FVM_ASSIGN(const LayoutSize laid_out, layout_size(forest, group));
  size.slots = laid_out.slots;
  size.bytes = laid_out.bytes;
  return size;
}

std::string print(const TiledForest& forest) {
  std::string text;
  for (std::size_t i = 0; i < forest.groups.size(); ++i) {
    const TreeGroup& group = forest.groups[i];
    const GroupSize size = *size_of(forest, group);  // no group is refused any more
    text += formatted("group g{}: {}, trees {} to {}, ", i, name_of(group.layout), group.tree_begin,
                      group.tree_end);
    if (group.tiling.size > 1)
      text += formatted("{} tiles of up to {}, ", group.tiling.by_probability ? "probability" : "uniform",
                        group.tiling.size);
    else if (group.tiling.by_probability)
      text += "along the likeliest walks, ";
    text += formatted("{} nodes in {} slots, {} bytes\n", size.nodes, size.slots, size.bytes);
    for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t) {
      const TiledTree& tree = forest.tree(group.tiling, t);
      text += formatted("  tree {}", t);
      if (forest.order[t] != t) text += formatted(" (the model's {})", forest.order[t]);
      text += formatted(": {} leaves at depth {} to {}", tree.leaves, tree.shallowest, tree.depth);
      if (group.pad_depth > tree.shallowest) text += formatted(", padded to {}", group.pad_depth);
      text += "\n";
    }
  }
  return text;
}

}  // namespace forestvm::scheduler
