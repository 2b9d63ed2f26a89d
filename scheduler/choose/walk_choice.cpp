// See walk_choice.hpp.
#include "scheduler/choose/walk_choice.hpp"

#include <string_view>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/tables.hpp>

namespace forestvm::scheduler {
namespace {

/// Adds a sparse layout, with nodes ordered along the likeliest walks if covers are known. That order makes calls
/// of deep forests 1.2 times as fast with up to 16 rows, and changes nothing from 512 rows on.
Schedule& lay_out_sparse(Schedule& schedule, const ForestFacts& facts) {
  if (facts.knows_covers) schedule.tileTree("tree", 1, "probability");
  return schedule.layout("tree", "sparse");
}

void add_tree_lanes(Schedule& schedule, const WalkChoice& walk, const ForestFacts& facts) {
  schedule.tile("tree", "t0", "t1", walk.lockstep);
  if (walk.layout == WalkLayout::Tables) {
    schedule.encode("u8");
    return;
  }
  lay_out_sparse(schedule, facts).interleave("t1");
  if (walk.coded) schedule.encode("u8");
  if (walk.unrolled) schedule.unrollWalk("t1");
}

void add_row_lanes(Schedule& schedule, const WalkChoice& walk, const ForestFacts& facts) {
  schedule.tile("batch", "b0", "b1", walk.block).reorder("b0", "tree", "b1");
  if (walk.layout == WalkLayout::Sparse) {
    schedule.tile("b1", "b2", "b3", walk.lockstep).parallel("b0");
    if (walk.coded) schedule.encode("u8");
    lay_out_sparse(schedule, facts).interleave("b3");
  } else {
    schedule.parallel("b0").encode("u8");
    if (walk.layout == WalkLayout::TreeTables) schedule.layout("tree", "treeTables");
  }
}

/// Calls of more rows have no candidates that walk one row at a time, but larger blocks.
constexpr std::uint32_t kMostRowsOneByOne = 64;
/// Walks are not unrolled in forests whose deepest tree is this many times as deep as the mean.
constexpr double kMostPadding = 2;

}  // namespace

void add_walk(Schedule& schedule, const WalkChoice& walk, const ForestFacts& facts) {
  switch (walk.lanes) {
    case Lanes::None:
      lay_out_sparse(schedule, facts);
      return;
    case Lanes::Trees:
      add_tree_lanes(schedule, walk, facts);
      return;
    case Lanes::Rows:
      add_row_lanes(schedule, walk, facts);
      return;
  }
}

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

std::string_view what_it_walks(const WalkChoice& walk) {
  switch (walk.layout) {
    case WalkLayout::Sparse:
      return walk.coded ? "codes" : "values";
    case WalkLayout::Tables:
      return "tables of codes";
    case WalkLayout::TreeTables:
      return "tree tables of codes";
  }
  return {};
}

}  // namespace forestvm::scheduler
