// Model -> tiled forest: for each walk site the layout and padding of its trees, and the end of its walks.
// Sites with the same trees in the same form share a group; each iteration of a specialized loop has a group.
#include <algorithm>
#include <tuple>

#include <forestvm/core/layouts.hpp>
#include <forestvm/internal/formatted.hpp>

#include "scheduler/layouts/builder.hpp"
#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

/// The directives at a site's loops that decide how its trees lie and its walks end; null where there is none.
struct Requests {
  const Requested<std::uint32_t>* unroll = nullptr;
  const Requested<std::uint32_t>* peel = nullptr;
  const Requested<std::string>* layout = nullptr;
  const Requested<Tiling>* tiling = nullptr;
};

Result<Requests> requests_of(const Lowering& lowering, const WalkSite& site) {
  Requests requests;
  std::vector<LoopId> walked = site.absorbed;
  if (walked.empty()) walked.push_back(site.leaf);
  for (const LoopId id : walked) {
    const Loop& loop = lowering.loops[id];
    if (loop.unroll_walk) {
      if (requests.unroll)
        return lowering.refuse(std::max(requests.unroll->directive, loop.unroll_walk->directive),
                               "these walks are unrolled already");
      requests.unroll = &*loop.unroll_walk;
    }
    if (loop.peel_walk) {
      if (requests.peel)
        return lowering.refuse(std::max(requests.peel->directive, loop.peel_walk->directive),
                               "these walks are peeled already");
      requests.peel = &*loop.peel_walk;
    }
  }
  if (requests.unroll && requests.peel)
    return lowering.refuse(std::max(requests.unroll->directive, requests.peel->directive),
                           "the same walks cannot be both unrolled and peeled");
  for (LoopId at = site.leaf; at != kNoLoop; at = lowering.loops[at].parent) {
    const Loop& loop = lowering.loops[at];
    if (loop.layout && !requests.layout) requests.layout = &*loop.layout;
    if (loop.tiling && !requests.tiling) requests.tiling = &*loop.tiling;
  }
  return requests;
}

std::pair<std::uint32_t, std::uint32_t> trees_of(const LoopTree& tree, const WalkSite& site) {
  LoopId at = site.leaf;
  while (tree[at].axis != Axis::Trees) at = tree[at].parent;
  return tree.tree_bounds(at);
}

/// Chooses a group's tiling. Refuses a tiling by probability if no node has a cover.
Result<void> choose_tiling(const Lowering& lowering, const Requests& requests, TreeGroup& group) {
  if (!requests.tiling) return {};
  group.tiling = requests.tiling->value;
  if (!group.tiling.by_probability) return {};
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    for (const Node& node : lowering.forest.model_tree(t).nodes)
      if (node.cover > 0) return {};
  return lowering.refuse(requests.tiling->directive,
                         "the model does not say how many training rows came to its nodes: use uniform");
}

/// Sets the end of a group's walks, as unrollWalk and peelWalk request.
Result<void> end_walks(const Lowering& lowering, const Requests& requests, const TreeGroup& group,
                       WalkerDesc& walker) {
  std::uint32_t depth = 0;
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    depth = std::max(depth, lowering.forest.tree(group.tiling, t).depth);
  walker.end = WalkEnd::UntilLeaf;
  walker.steps = 0;
  if (requests.unroll) {
    const std::uint32_t wanted =
        requests.unroll->value == 0 ? depth : std::min(depth, requests.unroll->value);
    if (wanted > UINT16_MAX)
      return lowering.refuse(requests.unroll->directive,
                             formatted("a tree of depth {} cannot be unrolled", depth));
    walker.steps = static_cast<std::uint16_t>(wanted);
    if (wanted == depth) walker.end = WalkEnd::Exact;
  }
  if (requests.peel) {
    for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t) {
      const std::uint32_t shallowest = lowering.forest.tree(group.tiling, t).shallowest;
      if (shallowest < requests.peel->value)
        return lowering.refuse(requests.peel->directive,
                               formatted("tree {} has a leaf at depth {}", t, shallowest));
    }
    walker.steps = static_cast<std::uint16_t>(std::min<std::uint32_t>(requests.peel->value, UINT16_MAX));
  }
  return {};
}

struct LayoutRow {
  Layout layout;
  std::string_view text;
  std::string_view word;
  unsigned tile_width;
};

constexpr LayoutRow kLayouts[] = {
#define FVM_LAYOUT(number, Name, text, word, View, meaning) {Layout::Name, text, word, View::kTileWidth},
#include <forestvm/core/layouts.def>
};

/// Returns the width of the narrowest tiles of any layout that hold `size` nodes.
unsigned tile_width(std::uint32_t size) {
  unsigned width = UINT32_MAX;
  for (const LayoutRow& row : kLayouts)
    if (row.tile_width >= size) width = std::min(width, row.tile_width);
  return width;
}

void set_layout(TreeGroup& group, Layout layout, std::uint16_t steps) {
  group.layout = layout;
  group.pad_depth = leaves_hold_still(layout) ? 0 : steps;  // otherwise leaves are repeated below themselves
}

bool has_categories(const Lowering& lowering, const TreeGroup& group) {
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    for (const Node& node : lowering.forest.model_tree(t).nodes)
      if (node.kind == NodeKind::Category) return true;
  return false;
}

bool codes_are_requested(const Lowering& lowering) {
  const auto& encode = lowering.loops.program.encode;
  return encode && encode->value == "u8";
}

/// Returns true if the group's trees are to be walked by rank codes where a layout allows it. Categorical splits
/// require codes.
bool wants_codes(const Lowering& lowering, const TreeGroup& group) {
  return codes_are_requested(lowering) || has_categories(lowering, group);
}

bool is_named(const LayoutRow& row, std::string_view name, const TreeGroup& group) {
  return (row.word == name || row.text == name) && row.tile_width == tile_width(group.tiling.size);
}

/// Chooses the first layout of this name that can hold the group's trees. If codes are wanted and some layout of
/// the name reads them, only layouts that read rank codes are considered, otherwise only the others. The error says
/// why none can.
Result<void> lay_out_as(const Lowering& lowering, std::string_view name, std::uint16_t steps,
                        TreeGroup& group) {
  const bool coded = wants_codes(lowering, group);
  const bool choice = std::any_of(std::begin(kLayouts), std::end(kLayouts), [&](const LayoutRow& row) {
    return is_named(row, name, group) && takes_codes(row.layout) == coded;
  });
  std::string problem = formatted("there is no layout '{}' of tiles of {} nodes", name, group.tiling.size);
  for (const LayoutRow& row : kLayouts) {
    if (!is_named(row, name, group) || (choice && takes_codes(row.layout) != coded)) continue;
    set_layout(group, row.layout, steps);
    const auto taken = size_of(lowering.forest, group);
    if (!taken) {
      problem = formatted("trees {} to {}: {}", group.tree_begin, group.tree_end, taken.error().message);
      continue;
    }
    const GroupSize& size = *taken;
    const std::uint64_t most_padding =
        row.word == "array" && row.tile_width == 1 ? kArrayPadding : kMaxPadding;
    if (size.slots <= most_padding * size.nodes && size.bytes <= kMaxGroupBytes) return {};
    return refused(formatted(
        "trees {} to {} with {} nodes would take {} slots ({} bytes), more than {} a node or 1 GiB: use layout sparse",
        group.tree_begin, group.tree_end, size.nodes, size.slots, size.bytes, most_padding));
  }
  return refused(problem);
}

/// Chooses a layout that reads rank codes, because there are categorical splits, where no directive names
/// one.
Result<void> lay_out_categories(const Lowering& lowering, const Requests& requests, std::uint16_t steps,
                                TreeGroup& group) {
  const std::string need = "the trees have categorical splits, which are tests of rank codes: ";
  if (group.tiling.size > 1)
    return lowering.refuse(requests.tiling->directive, need + "there are no tiles of such tests");
  const auto tables = lay_out_as(lowering, "tables", steps, group);
  if (tables.ok()) return {};
  const auto sparse = lay_out_as(lowering, "sparse", steps, group);
  if (sparse.ok()) return {};
  return refused(formatted("{}layout tables: {}; layout sparse: {}", need, tables.error().message,
                           sparse.error().message));
}

Result<void> lay_out(const Lowering& lowering, const Requests& requests, std::uint16_t steps,
                     TreeGroup& group) {
  const auto& encode = lowering.loops.program.encode;
  const bool categories = has_categories(lowering, group);
  if (categories && encode && encode->value == "none")
    return lowering.refuse(
        encode->directive,
        "the trees have categorical splits, which are tests of rank codes: use u8 or auto");
  if (requests.layout) {
    const auto done = lay_out_as(lowering, requests.layout->value, steps, group);
    if (!done.ok()) return lowering.refuse(requests.layout->directive, done.error().message);
    if (takes_codes(group.layout) && encode && encode->value == "none")
      return lowering.refuse(encode->directive,
                             formatted("layout {} reads rank codes", requests.layout->value));
    if (categories && !takes_codes(group.layout))
      return lowering.refuse(requests.layout->directive,
                             "the trees have categorical splits, which are tests of rank codes; this layout "
                             "reads values: use tables, or array or sparse without tiles");
    return {};
  }
  if (codes_are_requested(lowering)) {
    const auto done = lay_out_as(lowering, "tables", steps, group);
    if (!done.ok())
      return lowering.refuse(encode->directive, done.error().message + "; give such trees another layout");
    return {};
  }
  if (categories) return lay_out_categories(lowering, requests, steps, group);
  if (lay_out_as(lowering, "array", steps, group).ok()) return {};
  return lay_out_as(lowering, "sparse", steps, group);
}

/// Returns true if nodes of the layout may lie in any order, so that a tiling by probability orders them.
bool orders_nodes(Layout layout) { return kLayouts[static_cast<std::size_t>(layout)].word == "sparse"; }

/// Makes the group of a walker's trees.
Result<void> make_group(Lowering& lowering, const Requests& requests, std::uint32_t begin, std::uint32_t end,
                        WalkerDesc& walker) {
  TreeGroup group;
  group.tree_begin = begin;
  group.tree_end = end;
  FVM_TRY(choose_tiling(lowering, requests, group));
  lowering.forest.cut(group.tiling, begin, end);
  FVM_TRY(end_walks(lowering, requests, group, walker));
  FVM_TRY(lay_out(lowering, requests, walker.steps, group));
  if (group.tiling.size == 1 && !orders_nodes(group.layout)) {
    group.tiling.by_probability = false;
    lowering.forest.cut(group.tiling, begin, end);
  }
  walker.group = lowering.forest.group(group);
  return {};
}

}  // namespace

Result<void> tile_forest(Lowering& lowering) {
  for (WalkSite& site : lowering.sites) {
    FVM_ASSIGN(const Requests requests, requests_of(lowering, site));
    std::tie(site.tree_begin, site.tree_end) = trees_of(lowering.loops, site);
    if (site.tree_begin == site.tree_end) continue;
    if (site.specialized == kNoLoop) {
      FVM_TRY(make_group(lowering, requests, site.tree_begin, site.tree_end, site.walkers.front()));
      continue;
    }
    const auto [begin, end] = lowering.loops.tree_bounds(site.specialized);
    const std::uint64_t step = lowering.loops[site.specialized].step;
    site.walkers.resize(lowering.loops.iterations(site.specialized), site.walkers.front());
    for (std::size_t i = 0; i < site.walkers.size(); ++i) {
      const auto cut = [step, begin = begin, end = end](std::uint64_t at) {
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(end, begin + at * step));
      };
      FVM_TRY(make_group(lowering, requests, cut(i), cut(i + 1), site.walkers[i]));
    }
  }
  return {};
}

}  // namespace forestvm::scheduler
