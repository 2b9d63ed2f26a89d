// The verifier's rules for the forest and the program's tables, one by one.
#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>

#include <forestvm/core/layout/array.hpp>
#include <forestvm/core/layouts.hpp>

#include "support/small_models.hpp"
#include "vm/breach.hpp"

namespace forestvm::test::test_verify_forest {
namespace {

ArrayView::Node* array_nodes(ProgramParts& parts) { return nodes_of<ArrayView::Node>(parts, 0); }
Sparse16View::Node* sparse_nodes(ProgramParts& parts) { return nodes_of<Sparse16View::Node>(parts, 1); }

/// Returns the index of a sparse tree's first leaf.
std::uint32_t first_leaf(ProgramParts& parts) {
  std::uint32_t slot = 0;
  while ((sparse_nodes(parts)[slot].feature & kLeaf) == 0) ++slot;
  return slot;
}

TEST(VerifyForest, RefusesNodes) {
  const Breach breaches[] = {
      {"array: feature 3 of 3", [](ProgramParts& p) { array_nodes(p)[0].feature = 3; },
       "groups section: group 0, tree 0", "node 0: its feature lies outside the row"},
      {"array: a leaf's feature", [](ProgramParts& p) { array_nodes(p)[14].feature = kLeaf | 3; },
       "groups section: group 0, tree 0", "node 14: its feature lies outside the row"},
      {"array: largest feature", [](ProgramParts& p) { array_nodes(p)[1].feature = kFeatureMask; },
       "groups section: group 0, tree 0", "node 1: its feature"},
      {"array: the last level splits", [](ProgramParts& p) { array_nodes(p)[7].feature = 0; },
       "groups section: group 0, tree 0", "node 7: a slot of the last level is no leaf"},
      {"array: the last slot splits", [](ProgramParts& p) { array_nodes(p)[14].feature = kMissingLeft; },
       "groups section: group 0, tree 0", "node 14: a slot of the last level is no leaf"},
      {"sparse: feature 3 of 3", [](ProgramParts& p) { sparse_nodes(p)[0].feature = 3; },
       "groups section: group 1, tree 4", "node 0: its feature lies outside the row"},
      {"sparse: child is itself", [](ProgramParts& p) { sparse_nodes(p)[0].left = 0; },
       "groups section: group 1, tree 4", "node 0: a child does not come after its parent"},
      {"sparse: right child is itself", [](ProgramParts& p) { sparse_nodes(p)[0].right = 0; },
       "groups section: group 1, tree 4", "node 0: a child does not come after its parent"},
      {"sparse: child outside", [](ProgramParts& p) { sparse_nodes(p)[0].left = p.trees[4].node_count; },
       "groups section: group 1, tree 4", "node 0: a child lies outside its tree"},
      {"sparse: right child far outside", [](ProgramParts& p) { sparse_nodes(p)[0].right = UINT32_MAX; },
       "groups section: group 1, tree 4", "node 0: a child lies outside its tree"},
      {"sparse: a leaf tests a feature",
       [](ProgramParts& p) { sparse_nodes(p)[first_leaf(p)].feature = kLeaf | 1; },
       "groups section: group 1, tree 4", "a leaf tests a feature"},
      {"sparse: a leaf sends missing values",
       [](ProgramParts& p) { sparse_nodes(p)[first_leaf(p)].feature = kLeaf | kMissingLeft; },
       "groups section: group 1, tree 4", "a leaf tests a feature"},
      {"sparse: a leaf goes on", [](ProgramParts& p) { sparse_nodes(p)[first_leaf(p)].left = 0; },
       "groups section: group 1, tree 4", "a leaf's children are not itself"},
      {"sparse: a leaf goes on to the right", [](ProgramParts& p) { ++sparse_nodes(p)[first_leaf(p)].right; },
       "groups section: group 1, tree 4", "a leaf's children are not itself"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

TEST(VerifyForest, RefusesTrees) {
  const Breach breaches[] = {
      {"no nodes", [](ProgramParts& p) { p.trees[4].node_count = 0; }, "groups section: group 1, tree 4",
       "it has no nodes"},
      {"beyond its group", [](ProgramParts& p) { p.trees[5].node_count += 1; },
       "groups section: group 1, tree 5", "it leaves its group"},
      {"far beyond its group", [](ProgramParts& p) { p.trees[5].first_node = UINT32_MAX; },
       "groups section: group 1, tree 5", ""},
      {"output 3 of 3", [](ProgramParts& p) { p.trees[1].output = 3; }, "groups section: group 0, tree 1",
       "output 3 does not exist"},
      {"array: depth 27", [](ProgramParts& p) { p.trees[0].depth = 27; }, "groups section: group 0, tree 0",
       "do not fill its depth"},
      {"array: depth 2^32 - 1", [](ProgramParts& p) { p.trees[0].depth = UINT32_MAX; },
       "groups section: group 0, tree 0", "do not fill its depth"},
      {"array: too deep for its slots", [](ProgramParts& p) { ++p.trees[0].depth; },
       "groups section: group 0, tree 0", "do not fill its depth"},
      {"sparse: deeper than it is", [](ProgramParts& p) { ++p.trees[4].depth; },
       "groups section: group 1, tree 4", "its deepest leaf is at depth 1, its record says 2"},
      {"sparse: depth 0 with a split", [](ProgramParts& p) { p.trees[4].depth = 0; },
       "groups section: group 1, tree 4", "its deepest leaf is at depth 1, its record says 0"},
      {"the same nodes twice", [](ProgramParts& p) { p.trees[5] = p.trees[4]; },
       "groups section: group 1, tree 5", "does not follow"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

TEST(VerifyForest, RefusesGroups) {
  const Breach breaches[] = {
      {"layout 200", [](ProgramParts& p) { p.groups[0].layout = static_cast<Layout>(200); },
       "groups section: group 0", "unknown layout 200"},
      {"reserved byte", [](ProgramParts& p) { p.groups[1].reserved[1] = 1; }, "groups section: group 1",
       "reserved byte"},
      {"no trees", [](ProgramParts& p) { p.groups[0].tree_end = 0; }, "groups section: group 0",
       "trees 0 to 0"},
      {"more trees than the model", [](ProgramParts& p) { p.groups[1].tree_end = 7; },
       "groups section: group 1", "trees 4 to 7 of 6"},
      {"a tree record is missing", [](ProgramParts& p) { p.trees.pop_back(); }, "groups section: group 1",
       "its trees leave the trees section"},
      {"trees outside the section", [](ProgramParts& p) { p.groups[1].first_tree = 5; },
       "groups section: group 1", ""},
      {"trees far outside", [](ProgramParts& p) { p.groups[1].first_tree = UINT32_MAX; },
       "groups section: group 1", ""},
      {"another group's trees", [](ProgramParts& p) { p.groups[1].first_tree = 0; },
       "groups section: group 1", "do not follow"},
      {"offset not aligned", [](ProgramParts& p) { p.groups[1].node_offset += 16; },
       "groups section: group 1", "do not lie in the nodes section"},
      {"offset beyond", [](ProgramParts& p) { p.groups[1].node_offset = p.nodes.size() / 64 * 64 + 64; },
       "groups section: group 1", "do not lie in the nodes section"},
      {"huge offset", [](ProgramParts& p) { p.groups[1].node_offset = ~std::uint64_t{63}; },
       "groups section: group 1", "do not lie in the nodes section"},
      {"a tree record too many", [](ProgramParts& p) { p.trees.push_back(p.trees.back()); }, "trees section",
       "7 trees, but the groups have 6"},
      {"another group's nodes", [](ProgramParts& p) { p.groups[1].node_offset = 0; },
       "groups section: group 1", "overlap"},
      {"one node too many", [](ProgramParts& p) { ++p.groups[1].node_count; }, "groups section: group 1",
       "do not lie in the nodes section"},
      {"huge count", [](ProgramParts& p) { p.groups[1].node_count = UINT64_MAX / 16 + 1; },
       "groups section: group 1", "do not lie in the nodes section"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

/// Returns a forest in tiles: breadth-first tiles of 3 in the sparse form, then in level order, then
/// interleaved.
ProgramParts in_tiles(const char* layout) {
  return parts_of(compiled(small_forest({.depth = 5}),
                           std::string("tileTree(tree, 3, uniform); layout(tree, ") + layout + ")"));
}

using SparseTile = SparseTilesView<4>::Node;
using ArrayTile = ArrayTilesView<4>::Node;

TEST(VerifyForest, RefusesSparseTiles) {
  const auto tile = [](ProgramParts& p) { return nodes_of<SparseTile>(p, 0); };
  const Breach breaches[] = {
      {"feature", [&](ProgramParts& p) { tile(p)[0].features[1] = 3; }, "groups section: group 0, tree 0",
       "node 0: a feature lies outside the row"},
      {"unused feature", [&](ProgramParts& p) { tile(p)[0].features[3] = kFeatureMask; },
       "groups section: group 0, tree 0", "node 0: a feature lies outside the row"},
      {"the leaf's shape", [&](ProgramParts& p) { tile(p)[0].shape = 0; }, "groups section: group 0, tree 0",
       "there is no such tile shape"},
      {"a shape too far", [&](ProgramParts& p) { tile(p)[0].shape = UINT16_MAX; },
       "groups section: group 0, tree 0", "there is no such tile shape"},
      {"an exit that is none", [&](ProgramParts& p) { tile(p)[0].leaf_exits |= 0x100; },
       "groups section: group 0, tree 0", "a leaf stands at an exit"},
      {"a leaf too far",
       [&](ProgramParts& p) { tile(p)[1].leaf_exits = 1, tile(p)[1].first_leaf = 1u << 30; },
       "groups section: group 0, tree 0", "a leaf lies outside its tree"},
      {"itself its child", [&](ProgramParts& p) { tile(p)[0].first_tile = 0; },
       "groups section: group 0, tree 0", "a child does not come after its parent"},
      {"a child too far", [&](ProgramParts& p) { tile(p)[0].first_tile = p.trees[0].node_count - 1; },
       "groups section: group 0, tree 0", "a child lies outside its tree"},
      {"tiles of 2 that have 3", [](ProgramParts& p) { p.groups[0].tile_size = 2; },
       "groups section: group 0, tree 0", "its shape has more nodes than its tiles"},
      {"tiles of 5", [](ProgramParts& p) { p.groups[0].tile_size = 5; }, "groups section: group 0",
       "tiles of 5 nodes in layout sparse-tiles4"},
      {"no leaves", [](ProgramParts& p) { p.trees[0].leaf_count = 0; }, "groups section: group 0, tree 0",
       "a leaf lies outside its tree"},
      {"a leaf too few", [](ProgramParts& p) { --p.trees[0].leaf_count; }, "groups section: group 0, tree 0",
       "a leaf lies outside its tree"},
      {"a depth that is not its own", [](ProgramParts& p) { ++p.trees[0].depth; },
       "groups section: group 0, tree 0", "its deepest leaf is at depth"},
      {"leaves not in sequence", [](ProgramParts& p) { ++p.trees[1].first_leaf; },
       "groups section: group 0, tree 1", "its leaves do not follow"},
      {"too many leaves", [](ProgramParts& p) { p.trees.back().leaf_count += 1; },
       "groups section: group 0, tree 5", "its leaves leave its group"},
      {"leaves beyond the section", [](ProgramParts& p) { p.groups[0].leaf_count = UINT64_MAX / 4; },
       "groups section: group 0", "leaves do not lie in the nodes section"},
      {"a leaf beyond the section",
       [](ProgramParts& p) {
         ++p.groups[0].leaf_count;
         p.leaf_numbers.push_back(0);
       },
       "groups section: group 0", "leaves do not lie in the nodes section"},
      {"leaf numbers beyond the section", [](ProgramParts& p) { p.leaf_numbers.pop_back(); },
       "groups section: group 0", "leave the leaf_numbers section"},
      {"leaf numbers elsewhere", [](ProgramParts& p) { p.groups[0].first_number = 1; },
       "groups section: group 0", "do not follow the group before"},
      {"two trees of one number", [](ProgramParts& p) { p.trees[1].number = 0; },
       "groups section: group 0, tree 1", "the model's tree 0 stands elsewhere too"},
      {"a tree that the model does not have", [](ProgramParts& p) { p.trees[1].number = 6; },
       "groups section: group 0, tree 1", "the model has no tree 6"},
  };
  for (const Breach& breach : breaches) expect_refusal(in_tiles("sparse"), breach);
}

TEST(VerifyForest, RefusesLevelOrderTiles) {
  const auto tile = [](ProgramParts& p) { return nodes_of<ArrayTile>(p, 0); };
  const Breach breaches[] = {
      {"feature", [&](ProgramParts& p) { tile(p)[0].features[0] = 3; }, "groups section: group 0, tree 0",
       "node 0: a feature lies outside the row"},
      {"shape", [&](ProgramParts& p) { tile(p)[0].shape = 77; }, "groups section: group 0, tree 0",
       "there is no such tile shape"},
      {"a leaf with a shape", [&](ProgramParts& p) { tile(p)[0].shape = kLeaf | 1; },
       "groups section: group 0, tree 0", "there is no such tile shape"},
      {"a leaf that tests", [&](ProgramParts& p) { tile(p)[0].shape = kLeaf; },
       "groups section: group 0, tree 0", "a leaf tests a feature"},
      {"the last level goes on", [&](ProgramParts& p) { tile(p)[p.trees[0].node_count - 1].shape = 1; },
       "groups section: group 0, tree 0", "a slot of the last level is no leaf"},
      {"leaves aside", [](ProgramParts& p) { p.groups[0].leaf_count = 1; }, "groups section: group 0",
       "it has leaves aside"},
      {"a tree's leaves aside", [](ProgramParts& p) { p.trees[0].leaf_count = 1; },
       "groups section: group 0, tree 0", "it has leaves aside"},
      {"depth", [](ProgramParts& p) { p.trees[0].depth = 1; }, "groups section: group 0, tree 0",
       "do not fill its depth"},
  };
  for (const Breach& breach : breaches) expect_refusal(in_tiles("array"), breach);
  expect_refusal(in_tiles("reorg"), {"root", [](ProgramParts& p) { p.trees[1].first_node = 2; },
                                     "groups section: group 0, tree 1", "its root is not in its place"});
  expect_refusal(in_tiles("reorg"), {"slots", [](ProgramParts& p) { p.trees[1].node_count -= 1; },
                                     "groups section: group 0, tree 1", "its slots are not its part"});
}

TEST(VerifyForest, RefusesSparse8Nodes) {
  const auto node = [](ProgramParts& p) { return nodes_of<Sparse8View::Node>(p, 0); };
  const Breach breaches[] = {
      {"feature", [&](ProgramParts& p) { node(p)[0].word |= 3u << Sparse8View::kDistanceBits; },
       "groups section: group 0, tree 0", "node 0: its feature lies outside the row"},
      {"itself its child", [&](ProgramParts& p) { node(p)[0].word &= ~Sparse8View::kDistanceMask; },
       "groups section: group 0, tree 0", "a child does not come after its parent"},
      {"a child too far", [&](ProgramParts& p) { node(p)[0].word |= Sparse8View::kDistanceMask; },
       "groups section: group 0, tree 0", "a child lies outside its tree"},
      {"a leaf with a child", [&](ProgramParts& p) { node(p)[p.trees[0].node_count - 1].word = kLeaf | 1; },
       "groups section: group 0, tree 0", "a leaf tests a feature or has children"},
  };
  for (const Breach& breach : breaches)
    expect_refusal(parts_of(compiled(small_forest(), "layout(tree, sparse8)")), breach);
}

TEST(VerifyForest, RefusesLevelOrderOfCodes) {
  const auto node = [](ProgramParts& p) { return nodes_of<Array4View::Node>(p, 0); };
  const Breach breaches[] = {
      {"column", [&](ProgramParts& p) { node(p)[0].word |= Array4View::kColumnMask; },
       "groups section: group 0, tree 0", "node 0: its column does not exist"},
      {"code", [&](ProgramParts& p) { node(p)[0].word = 0xfeu << Array4View::kCodeShift; },
       "groups section: group 0, tree 0", "node 0: its code is above its column's ranks"},
      {"depth", [](ProgramParts& p) { ++p.trees[0].depth; }, "groups section: group 0, tree 0",
       "do not fill its depth"},
      {"a tree's leaves aside", [](ProgramParts& p) { p.trees[0].leaf_count = 1; },
       "groups section: group 0, tree 0", "it has leaves aside"},
      {"a step too many", [](ProgramParts& p) { ++p.walkers[0].steps; }, "walkers section: w0",
       "steps without a leaf check"},
  };
  for (const Breach& breach : breaches)
    expect_refusal(parts_of(compiled(small_forest(), "layout(tree, array4); unrollWalk(tree)")), breach);
}

TEST(VerifyTables, RefusesTileShapes) {
  const std::uint8_t exit = kTileExit;
  const auto set = [](TileShape shape) { return [=](ProgramParts& p) { p.tile_shapes[1] = shape; }; };
  const Breach breaches[] = {
      {"a first shape with nodes", [](ProgramParts& p) { std::swap(p.tile_shapes[0], p.tile_shapes[1]); },
       "tile_shapes section: shape 0", "the first shape"},
      {"another without", set({0, {}, {}}), "tile_shapes section: shape 1", "the first shape"},
      {"nine nodes", set({9, {}, {}}), "tile_shapes section: shape 1", "more nodes than a tile"},
      {"a node twice", set({2, {1, exit}, {1, static_cast<std::uint8_t>(exit | 1)}}),
       "tile_shapes section: shape 1", "not a binary tree"},
      {"an exit twice", set({1, {exit}, {exit}}), "tile_shapes section: shape 1", "not a binary tree"},
      {"an exit too many", set({1, {exit}, {static_cast<std::uint8_t>(exit | 2)}}),
       "tile_shapes section: shape 1", "not a binary tree"},
      {"a node from itself", set({1, {0}, {exit}}), "tile_shapes section: shape 1", "not a binary tree"},
      {"an entry that is not used", set({1, {exit, 0}, {static_cast<std::uint8_t>(exit | 1), 1}}),
       "tile_shapes section: shape 1", "an unused entry"},
      {"too many", [](ProgramParts& p) { p.tile_shapes.resize(kMaxTileShapes + 1, p.tile_shapes[1]); },
       "tile_shapes section", "shapes, at most"},
  };
  for (const Breach& breach : breaches) expect_refusal(in_tiles("sparse"), breach);
}

TEST(VerifyTables, RefusesAccumulatorsInOneAnother) {
  const Breach breaches[] = {
      {"unknown kind", [](ProgramParts& p) { p.accumulators[1].kind = static_cast<AccumulatorKind>(6); },
       "accumulators section", "a1: unknown kind"},
      {"a result of another kind", [](ProgramParts& p) { p.accumulators[0].kind = AccumulatorKind::F64; },
       "accumulators section", "a0: the result is float32"},
      {"a result elsewhere", [](ProgramParts& p) { p.accumulators[0].stored_in = 1; }, "accumulators section",
       "a0: the result is float32 and has memory of its own"},
      {"copies of another kind", [](ProgramParts& p) { p.accumulators[1].kind = AccumulatorKind::F64; },
       "accumulators section", "a1: its parent is of another kind"},
      {"private per-tree values", [](ProgramParts& p) { p.accumulators[1].kind = AccumulatorKind::PerTree; },
       "accumulators section", "a1: per-tree values are never private"},
      {"in one before", [](ProgramParts& p) { p.accumulators[1].stored_in = 0; }, "accumulators section",
       "a1: it lies in no later accumulator"},
      {"in none", [](ProgramParts& p) { p.accumulators[1].stored_in = 2; }, "accumulators section",
       "a1: it lies in no later accumulator"},
      {"in a stranger",
       [](ProgramParts& p) {
         p.accumulators[1].stored_in = 2;
         p.accumulators.push_back(copies(0, 2, 2, 2));
       },
       "accumulators section", "a1: it lies in an accumulator that is not a private copy of it"},
      {"a reserved byte", [](ProgramParts& p) { p.accumulators[1].reserved[1] = 1; }, "accumulators section",
       "a1: a reserved byte"},
      {"unit 2^-1023", [](ProgramParts& p) { p.meta.sum_unit = -1023; }, "meta section", "2^-1023"},
      {"unit 2^1023", [](ProgramParts& p) { p.meta.sum_unit = 1023; }, "meta section", "2^1023"},
      {"float64 leaves that are not there",
       [](ProgramParts& p) { p.accumulators.push_back(shared(2, AccumulatorKind::PerTree64)); },
       "accumulators section", "a2: float64 leaves of a program that has none"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

TEST(VerifyTables, RefusesMeta) {
  const Breach breaches[] = {
      {"no features", [](ProgramParts& p) { p.meta.num_features = 0; }, "meta section",
       "0 features, expected 1 to"},
      {"too many features", [](ProgramParts& p) { p.meta.num_features = kMaxFeatures + 1; }, "meta section",
       "features, expected 1 to"},
      {"no outputs", [](ProgramParts& p) { p.meta.num_outputs = 0; }, "meta section", "0 outputs"},
      {"too many outputs", [](ProgramParts& p) { p.meta.num_outputs = 65537; }, "meta section",
       "65537 outputs"},
      {"more trees than there are", [](ProgramParts& p) { p.meta.num_trees = UINT32_MAX; }, "meta section",
       "trees, but the groups have 6"},
      {"transform 99", [](ProgramParts& p) { p.meta.transform = static_cast<Transform>(99); }, "meta section",
       "unknown transform"},
      {"class rule 99", [](ProgramParts& p) { p.meta.class_rule = static_cast<ClassRule>(99); },
       "meta section", "unknown class rule"},
      {"contract 3", [](ProgramParts& p) { p.meta.contract = static_cast<Contract>(3); }, "meta section",
       "unknown numeric contract"},
      {"order 2", [](ProgramParts& p) { p.meta.sums_in_model_order = 2; }, "meta section",
       "sums_in_model_order"},
      {"zeros of no feature", [](ProgramParts& p) { p.zero_missing = {3}; }, "zero_missing section: record 0",
       "outside the row"},
      {"zeros of a feature twice",
       [](ProgramParts& p) {
         p.zero_missing = {1, 1};
       },
       "zero_missing section: record 1", "does not ascend"},
      {"float64 rules of a float32 program",
       [](ProgramParts& p) {
         p.wide_features = {{1, 0, 0, 0, 0, {}}};
       },
       "wide_features section: record 0", "does not compare in float64"},
      {"bounds of no feature", [](ProgramParts& p) { p.wide_bounds = {0.1}; }, "wide_bounds section",
       "1 bounds, but the features have 0"},
      {"scores of no type", [](ProgramParts& p) { p.meta.score_type = static_cast<ScalarType>(2); },
       "meta section", "unknown type of the scores"},
      {"divisor 0", [](ProgramParts& p) { p.meta.divisor = 0; }, "meta section", "divisor"},
      {"divisor NaN", [](ProgramParts& p) { p.meta.divisor = std::numeric_limits<double>::quiet_NaN(); },
       "meta section", "divisor"},
      {"slope inf", [](ProgramParts& p) { p.meta.slope = std::numeric_limits<double>::infinity(); },
       "meta section", "slope"},
      {"reserved", [](ProgramParts& p) { p.meta.reserved2 = 1; }, "meta section", "reserved byte"},
      {"margins of 2", [](ProgramParts& p) { p.meta.takes_margins = 2; }, "meta section", "takes_margins"},
      {"early stop of no kind", [](ProgramParts& p) { p.meta.early_stop = static_cast<EarlyStopRule>(3); },
       "meta section", "unknown rule of early stop"},
      {"a lead of one output",
       [](ProgramParts& p) {
         p.meta.num_outputs = 1;
         p.meta.early_stop = EarlyStopRule::Lead;
       },
       "meta section", "a lead of a single output"},
      {"a median without weights", [](ProgramParts& p) { p.meta.transform = Transform::WeightedMedian; },
       "meta section", "as many weights"},
      {"groups of outputs", [](ProgramParts& p) { p.meta.group_ends = 4; }, "meta section",
       "the groups of outputs"},
      {"groups that do not cover the outputs",
       [](ProgramParts& p) {
         p.meta.class_rule = ClassRule::ArgmaxOfEach;
         p.meta.group_ends = 2;
       },
       "meta section", "the groups of outputs"},
      {"reserved at the end", [](ProgramParts& p) { p.meta.reserved2 = 1; }, "meta section", "reserved byte"},
      {"float64 leaves of float32 scores", [](ProgramParts& p) { p.wide_leaves.push_back(1); },
       "wide_leaves section", "1 leaves"},
      {"float64 scores without their leaves",
       [](ProgramParts& p) { p.meta.score_type = ScalarType::Float64; }, "wide_leaves section", "0 leaves"},
      {"rows of no type", [](ProgramParts& p) { p.meta.row_type = static_cast<ScalarType>(2); },
       "meta section", "unknown type of the rows"},
      {"float64 rows and float32 scores", [](ProgramParts& p) { p.meta.row_type = ScalarType::Float64; },
       "meta section", "float64 rows"},
      {"pair of no rule", [](ProgramParts& p) { p.meta.pair = static_cast<Pair>(9); }, "meta section",
       "unknown pair"},
      {"pairs of several outputs",
       [](ProgramParts& p) {
         p.meta.pair = Pair::Complement;
         p.meta.num_outputs = 2;
       },
       "meta section", "pairs of values"},
      {"variances of three outputs", [](ProgramParts& p) { p.meta.transform = Transform::Uncertainty; },
       "meta section", "means and variances for 3 outputs"},
      {"scale 0", [](ProgramParts& p) { p.meta.scale = 0; }, "meta section", "scale"},
      {"offset NaN", [](ProgramParts& p) { p.meta.offset = std::numeric_limits<double>::quiet_NaN(); },
       "meta section", "offset"},
      {"names of a feature that is none",
       [](ProgramParts& p) {
         p.category_names = {{3, 0, 0, 0, {}}};
       },
       "category_names section: record 0", "outside the row"},
      {"names of a feature twice",
       [](ProgramParts& p) {
         p.category_names = {{1, 0, 0, 0, {}}, {1, 0, 0, 0, {}}};
       },
       "category_names section: record 1", "does not ascend"},
      {"names that are not there",
       [](ProgramParts& p) {
         p.category_names = {{1, 2, 0, 0, {}}};
       },
       "strings section", "strings, expected"},
      {"a category below zero",
       [](ProgramParts& p) {
         p.category_names = {{1, 0, -1, 0, {}}};
       },
       "category_names section: record 0", "not a category"},
      {"names with a flag of 2",
       [](ProgramParts& p) {
         p.category_names = {{1, 0, 0, 2, {}}};
       },
       "category_names section: record 0", "neither 0 nor 1"},
      {"a vector cut in two", [](ProgramParts& p) { p.leaf_vectors.resize(3); }, "leaf_vectors section",
       "3 bytes"},
      {"a float64 leaf too few",
       [](ProgramParts& p) {
         p.meta.score_type = ScalarType::Float64;
         p.wide_leaves.resize(p.leaf_numbers.size() - 1);
       },
       "wide_leaves section", "one for each leaf number"},
      {"depth NaN", [](ProgramParts& p) { p.meta.mean_depth = std::numeric_limits<double>::quiet_NaN(); },
       "meta section", "mean depth"},
      {"names of some features", [](ProgramParts& p) { p.meta.num_feature_names = 2; }, "meta section",
       "2 feature names for 3 features"},
      {"labels that are not there", [](ProgramParts& p) { ++p.meta.num_class_labels; }, "strings section",
       "11 strings, expected 12"},
      {"a string too few", [](ProgramParts& p) { p.strings.pop_back(); }, "strings section", "10 strings"},
      {"no strings", [](ProgramParts& p) { p.strings.clear(); }, "strings section", "0 strings"},
      {"a base too few", [](ProgramParts& p) { p.base.pop_back(); }, "base section", "2 base scores"},
      {"thresholds outside the row", [](ProgramParts& p) { p.thresholds.back().feature = 3; },
       "thresholds section: record", "outside the row"},
      {"thresholds of a feature twice", [](ProgramParts& p) { p.thresholds.push_back(p.thresholds.back()); },
       "thresholds section: record", "does not ascend"},
      {"a count of no thresholds", [](ProgramParts& p) { p.thresholds[0].count = 0; },
       "thresholds section: record 0", "has none"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

TEST(VerifyTables, RefusesAccumulators) {
  const Breach breaches[] = {
      {"none", [](ProgramParts& p) { p.accumulators.clear(); }, "accumulators section", "0 accumulators"},
      {"nine", [](ProgramParts& p) { p.accumulators.resize(9, copies(0, 1, 1, 1)); }, "accumulators section",
       "9 accumulators"},
      {"two results", [](ProgramParts& p) { p.accumulators[0].copies = 2; }, "accumulators section",
       "a0: what is not private exists once"},
      {"a result with iterations", [](ProgramParts& p) { p.accumulators[0].iterations = 0; },
       "accumulators section", "a0: what is not private exists once"},
      {"its own parent", [](ProgramParts& p) { p.accumulators[1].parent = 1; }, "accumulators section",
       "a1: what is not private exists once"},
      {"parent far away", [](ProgramParts& p) { p.accumulators[1].parent = UINT32_MAX; },
       "accumulators section", "a1: its parent must come before it"},
      {"no iterations", [](ProgramParts& p) { p.accumulators[1] = copies(0, 0, 0, 1); },
       "accumulators section", "a1: no iterations"},
      {"fewer copies", [](ProgramParts& p) { p.accumulators[1].copies = 1; }, "accumulators section",
       "a1: 1 copies are not"},
      {"copies that wrap around",
       [](ProgramParts& p) {
         p.accumulators = {shared(0), copies(0, 65536, 65536, 1), copies(1, 65536, 0, 2)};
       },
       "accumulators section", "a2: 0 copies are not"},
      {"too much memory", [](ProgramParts& p) { p.accumulators[1] = copies(0, 1u << 24, 1u << 24, 1); },
       "accumulators section", "bytes of private accumulators a row"},
      {"the most memory", [](ProgramParts& p) { p.accumulators[1] = copies(0, UINT32_MAX, UINT32_MAX, 1); },
       "accumulators section", "bytes of private accumulators a row"},
  };
  for (const Breach& breach : breaches) expect_refusal(parts_of(rich_program()), breach);
}

TEST(VerifyForest, RefusesSparse4Nodes) {
  using View = Sparse4View;
  const auto node = [](ProgramParts& p) { return nodes_of<View::Node>(p, 0); };
  const auto last = [](ProgramParts& p) { return p.trees[0].node_count - 1; };
  const Breach breaches[] = {
      {"column", [&](ProgramParts& p) { node(p)[0].word |= (View::kMaxColumns - 1) << View::kColumnShift; },
       "groups section: group 0, tree 0", "node 0: its column does not exist"},
      {"code", [&](ProgramParts& p) { node(p)[0].word = (node(p)[0].word & ~0xffu) | 0xfe; },
       "groups section: group 0, tree 0", "node 0: its code is above its column's ranks"},
      {"itself its child", [&](ProgramParts& p) { node(p)[0].word &= (1u << View::kDistanceShift) - 1; },
       "groups section: group 0, tree 0", "a child does not come after its parent"},
      {"a child too far",
       [&](ProgramParts& p) { node(p)[0].word |= View::kMaxDistance << View::kDistanceShift; },
       "groups section: group 0, tree 0", "a child lies outside its tree"},
      {"another tree's leaf",
       [&](ProgramParts& p) {
         node(p)[last(p)].word = p.trees[0].leaf_count << View::kLeafShift | kNeverRight;
       },
       "groups section: group 0, tree 0", "a leaf lies outside its tree"},
      {"a tree before's leaf",
       [&](ProgramParts& p) {
         node(p)[p.trees[1].first_node + p.trees[1].node_count - 1].word = kNeverRight;
       },
       "groups section: group 0, tree 1", "a leaf lies outside its tree"},
      {"no leaves",
       [&](ProgramParts& p) {
         for (TreeDesc& tree : p.trees) tree.leaf_count = tree.first_leaf = 0;
       },
       "groups section: group 0, tree 0", "a leaf lies outside its tree"},
  };
  for (const Breach& breach : breaches)
    expect_refusal(parts_of(compiled(small_forest(), "layout(tree, sparse); encode(u8)")), breach);
}

}  // namespace
}  // namespace forestvm::test::test_verify_forest
