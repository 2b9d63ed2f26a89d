// Model -> tiled forest: for each walk site the layout of its trees, their padding and how the walk ends.
// Sites that want the same trees in the same form share a group. Refuses by name what no walker can run yet.
#include <algorithm>
#include <tuple>

#include <forestvm/core/layouts.hpp>

#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

Result<void> check_model(const Model& model) {
  if (model.score_type != ScalarType::Float32) return refused("", "float64 models are not lowered yet");
  if (model.num_features == 0) return refused("", "the model has no features");
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    const Tree& tree = model.trees[t];
    const auto wrong = [&](std::size_t node, const std::string& what) {
      return refused("tree " + number(t) + ", node " + number(node), what + " are not lowered yet");
    };
    if (tree.leaf_width != 1) return wrong(0, "vector leaves");
    if (!tree.linear_leaves.empty()) return wrong(0, "linear leaves");
    for (std::size_t n = 0; n < tree.nodes.size(); ++n) {
      if (tree.nodes[n].kind == NodeKind::Category) return wrong(n, "categorical splits");
      if (tree.nodes[n].kind == NodeKind::LessEqual) return wrong(n, "splits by <=");
    }
  }
  return {};
}

/// What the site's loops say about its walks.
struct Wishes {
  const Asked<std::uint32_t>* unroll = nullptr;
  const Asked<std::uint32_t>* peel = nullptr;
  const Asked<Layout>* layout = nullptr;
};

Result<Wishes> wishes_of(const Lowering& lowering, const WalkSite& site) {
  Wishes wishes;
  for (const LoopId id : site.absorbed) {
    const Loop& loop = lowering.loops[id];
    if (loop.unroll_walk) {
      if (wishes.unroll)
        return lowering.refuse(std::max(wishes.unroll->directive, loop.unroll_walk->directive),
                               "these walks are unrolled already");
      wishes.unroll = &*loop.unroll_walk;
    }
    if (loop.peel_walk) {
      if (wishes.peel)
        return lowering.refuse(std::max(wishes.peel->directive, loop.peel_walk->directive),
                               "these walks are peeled already");
      wishes.peel = &*loop.peel_walk;
    }
  }
  if (wishes.unroll && wishes.peel)
    return lowering.refuse(std::max(wishes.unroll->directive, wishes.peel->directive),
                           "the same walks cannot be both unrolled and peeled");
  for (LoopId at = site.leaf; at != kNoLoop && !wishes.layout; at = lowering.loops[at].parent)
    if (lowering.loops[at].layout) wishes.layout = &*lowering.loops[at].layout;
  return wishes;
}

std::pair<std::uint32_t, std::uint32_t> trees_of(const LoopTree& tree, const WalkSite& site) {
  LoopId at = site.leaf;
  while (tree[at].axis != Axis::Trees) at = tree[at].parent;
  return tree.tree_bounds(at);
}

/// How the walks of a site end, from unrollWalk and peelWalk, for trees of these depths.
Result<void> end_walks(const Lowering& lowering, const Wishes& wishes, const TreeGroup& group,
                       std::uint32_t depth, WalkerDesc& walker) {
  walker.end = WalkEnd::UntilLeaf;
  walker.hops = 0;
  if (wishes.unroll) {
    const std::uint32_t wanted = wishes.unroll->value == 0 ? depth : std::min(depth, wishes.unroll->value);
    if (wanted > UINT16_MAX)
      return lowering.refuse(wishes.unroll->directive,
                             "a tree of depth " + number(depth) + " cannot be unrolled");
    walker.hops = static_cast<std::uint16_t>(wanted);
    if (wanted == depth) walker.end = WalkEnd::Exact;
  }
  if (wishes.peel) {
    for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
      if (lowering.forest.shapes[t].shallowest < wishes.peel->value)
        return lowering.refuse(wishes.peel->directive, "tree " + number(t) + " has a leaf at depth " +
                                                           number(lowering.forest.shapes[t].shallowest));
    walker.hops = static_cast<std::uint16_t>(std::min<std::uint32_t>(wishes.peel->value, UINT16_MAX));
  }
  return {};
}

Result<void> lay_out(const Lowering& lowering, const Wishes& wishes, std::uint16_t hops, TreeGroup& group) {
  group.layout = Layout::Array;
  group.pad_depth = wishes.unroll ? hops : 0;
  const GroupSize as_array = size_of(lowering.forest, group);
  const bool fits = array_fits(as_array);
  if (!wishes.layout) {
    if (!fits) group.layout = Layout::Sparse;
  } else {
    group.layout = wishes.layout->value;
    if (group.layout == Layout::Array && !fits)
      return lowering.refuse(wishes.layout->directive,
                             "trees " + number(group.tree_begin) + " to " + number(group.tree_end) +
                                 " with " + number(as_array.nodes) + " nodes would take " +
                                 number(as_array.slots) + " slots (" + number(as_array.bytes) +
                                 " bytes), more than 4 a node or 1 GiB: use layout sparse");
  }
  if (group.layout == Layout::Sparse)
    group.pad_depth = 0;  // a sparse leaf points to itself, nothing is padded
  return {};
}

}  // namespace

Result<void> tile_forest(Lowering& lowering) {
  FVM_TRY(check_model(lowering.model));
  for (const Tree& tree : lowering.model.trees) lowering.forest.shapes.push_back(shape_of(tree));
  for (WalkSite& site : lowering.sites) {
    FVM_ASSIGN(const Wishes wishes, wishes_of(lowering, site));
    std::tie(site.tree_begin, site.tree_end) = trees_of(lowering.loops, site);
    if (site.tree_begin == site.tree_end) continue;
    TreeGroup group;
    group.tree_begin = site.tree_begin;
    group.tree_end = site.tree_end;
    std::uint32_t depth = 0;
    for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
      depth = std::max(depth, lowering.forest.shapes[t].depth);
    FVM_TRY(end_walks(lowering, wishes, group, depth, site.walker));
    FVM_TRY(lay_out(lowering, wishes, site.walker.hops, group));
    site.walker.group = lowering.forest.group(group);
  }
  return {};
}

}  // namespace forestvm::scheduler
