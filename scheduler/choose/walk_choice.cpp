// See walk_choice.hpp.
#include "scheduler/choose/walk_choice.hpp"

#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/tables.hpp>

namespace forestvm::scheduler {
namespace {

/// Calls of more rows have no candidates that walk one row at a time, but larger blocks.
constexpr std::uint32_t kMostRowsOneByOne = 64;
/// Walks are not unrolled in forests whose deepest tree is this many times as deep as the mean.
constexpr double kMostPadding = 2;

}  // namespace

HostTemplatePoint template_point(const WalkChoice& walk, const ForestFacts& facts) {
  HostTemplatePoint point;
  const bool sparse = walk.layout == WalkLayout::Sparse;
  if (walk.lanes == Lanes::Rows) {
    point.parallel = "rows";
    point.block = walk.block;
  } else {
    point.lanes = "trees";
  }
  point.interleave = walk.lockstep;
  point.layout = sparse ? "sparse" : walk.layout == WalkLayout::Tables ? "tables" : "treeTables";
  // Nodes along the likeliest walks make calls of deep forests 1.2 times as fast with up to 16 rows, and change nothing
  // from 512 rows on.
  if (sparse && facts.knows_covers) point.tiling = "probability";
  if (walk.coded) point.encode = "u8";
  if (walk.unrolled) point.walker = "unrolled";
  return point;
}

std::vector<WalkChoice> walks_for(const ForestFacts& facts, std::uint32_t rows) {
  const bool few = rows <= kMostRowsOneByOne;
  const bool nodes_hold_codes =
      facts.columns <= Sparse4View::kMaxColumns && 2 * facts.most_leaves <= Sparse4View::kMaxDistance;
  std::vector<WalkChoice> walks;
  const auto add = [&](const WalkChoice& walk) {
    if (walk.coded && walk.layout == WalkLayout::Sparse && !nodes_hold_codes) return;
    if (walk.layout == WalkLayout::Tables && !facts.fits_tables) return;
    if (walk.layout == WalkLayout::TreeTables && facts.most_leaves > kMaxTreeSlots + 1) return;
    walks.push_back(walk);
  };
  if (few) {
    add({Lanes::None, WalkLayout::Sparse, false, 1, 0});
    for (const bool coded : {false, true})
      for (const std::uint32_t lockstep : {16u, 128u}) {
        add({Lanes::Trees, WalkLayout::Sparse, coded, lockstep, 0, false});
        if (facts.padding() <= kMostPadding)
          add({Lanes::Trees, WalkLayout::Sparse, coded, lockstep, 0, true});
      }
  }
  const std::vector<std::uint32_t> blocks = few ? std::vector{64u} : std::vector{64u, 256u, 512u};
  for (const std::uint32_t block : blocks) {
    add({Lanes::Rows, WalkLayout::Tables, true, 1, block});
    add({Lanes::Rows, WalkLayout::TreeTables, true, 1, block});
    if (few || block > kMostRowsOneByOne)
      for (const bool coded : {false, true})
        add({Lanes::Rows, WalkLayout::Sparse, coded, few ? 64u : 128u, block});
  }
  return walks;
}

}  // namespace forestvm::scheduler
