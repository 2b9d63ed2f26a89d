// tileTree(tree, 4, uniform) groups the nodes of the trees that a loop walks into tiles of up to 4, which are
// tested at once; the outcomes and the tile's shape say where a walk goes on. `uniform` fills tiles level by level;
// `probability` fills them along the walks that most training rows took. Tiles of one node are the nodes
// themselves: `probability` then puts a node's likelier child close behind it, where the layout leaves the order
// open. Like a layout, a tiling applies to all loops that the named one became; of nested loops, the innermost that
// has a tiling decides. Source: Treebeard (MICRO 2022).
//
//   while not leaf: step        ->     while not leaf: step over up to 4 nodes
#include "scheduler/directives/apply.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler {

Result<void> apply_TileTree(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find_family(at.loop(0)));
  for (const LoopId loop : loops)
    if (tree[loop].axis != Axis::Trees)
      return refused(
          formatted("loop '{}' goes over rows; tiles belong to a loop over trees", tree[loop].name));
  const std::uint64_t size = at.number(1, tree);
  if (size > kMaxTileSize) return refused(formatted("tiles of {} nodes, at most {}", size, kMaxTileSize));
  return request(tree, loops, &Loop::tiling,
                 Tiling{static_cast<std::uint32_t>(size), at.loop(2) == "probability"}, at);
}

}  // namespace forestvm::scheduler
