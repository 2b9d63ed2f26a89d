// Shapes, sizes and the printed form of the tiled forest.
#include "scheduler/tiled_forest.hpp"

#include <algorithm>

#include <forestvm/core/layouts.hpp>
#include <forestvm/names.hpp>

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

std::uint64_t slots(const TreeGroup& group, const TreeShape& shape) {
  switch (group.layout) {
#define FVM_LAYOUT(Name, text, View, meaning) \
  case Layout::Name:                          \
    return slots_##Name(shape, group.pad_depth);
#include <forestvm/core/layouts.def>
  }
  return 0;
}

std::size_t node_size(Layout layout) {
  switch (layout) {
#define FVM_LAYOUT(Name, text, View, meaning) \
  case Layout::Name:                          \
    return sizeof(View::Node);
#include <forestvm/core/layouts.def>
  }
  return 0;
}

GroupSize size_of(const TiledForest& forest, const TreeGroup& group) {
  GroupSize size;
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t) {
    size.nodes += forest.shapes[t].nodes;
    const std::uint64_t more = slots(group, forest.shapes[t]);
    size.slots = more > UINT64_MAX / 64 - size.slots ? UINT64_MAX / 64 : size.slots + more;
  }
  size.bytes = size.slots * node_size(group.layout);
  return size;
}

bool array_fits(const GroupSize& size) {
  return size.slots <= 4 * size.nodes && size.bytes <= std::uint64_t{1} << 30;
}

std::string print(const TiledForest& forest) {
  std::string text;
  for (std::size_t i = 0; i < forest.groups.size(); ++i) {
    const TreeGroup& group = forest.groups[i];
    const GroupSize size = size_of(forest, group);
    text += "group g" + std::to_string(i) + ": " + std::string(name_of(group.layout)) + ", trees " +
            std::to_string(group.tree_begin) + " to " + std::to_string(group.tree_end) + ", " +
            std::to_string(size.nodes) + " nodes in " + std::to_string(size.slots) + " slots, " +
            std::to_string(size.bytes) + " bytes\n";
    for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t) {
      const TreeShape& shape = forest.shapes[t];
      text += "  tree " + std::to_string(t) + ": " + std::to_string(shape.leaves) + " leaves at depth " +
              std::to_string(shape.shallowest) + " to " + std::to_string(shape.depth);
      if (group.pad_depth > shape.shallowest) text += ", padded to " + std::to_string(group.pad_depth);
      text += ", " + std::to_string(slots(group, shape)) + " slots\n";
    }
  }
  return text;
}

}  // namespace forestvm::scheduler
