// The verifier's rules for levels of tables, one by one.
#include <gtest/gtest.h>

#include <functional>

#include <forestvm/core/layout/tables.hpp>
#include <forestvm/core/layout/top_tables.hpp>

#include "support/small_models.hpp"
#include "vm/breach.hpp"

namespace forestvm::test::test_verify_table_levels {
namespace {

using support::leaf, support::split;

/// Returns level `i` of the first tree of tables.
TableLevel& level_of(ProgramParts& parts, std::uint32_t i) {
  return reinterpret_cast<TableLevel*>(nodes_of<TableLine>(parts, 0))[i];
}
LevelTables tables_of(ProgramParts& parts, std::uint32_t i) {
  return {nodes_of<TableLine>(parts, 0), level_of(parts, i)};
}

template <class T>
T& change(const T* at) {
  return *const_cast<T*>(at);
}

/// Returns a tree with levels of 1, 2 and 4 slots, whose first slot in the last level is a leaf; and a tree
/// of one leaf.
Model three_levels() {
  const auto stump = [](std::uint32_t feature, double value) {
    return split(feature, value, leaf(value), leaf(0));
  };
  return support::model_of(
      {split(0, 1, split(1, 2, leaf(5), stump(0, 3)), split(2, 3, stump(1, 4), stump(2, 5))), leaf(3)});
}

TEST(VerifyTableLevels, Refuses) {
  const ProgramParts good = parts_of(compiled(three_levels(), "encode(u8)"));
  ProgramParts parts = good;
  ASSERT_EQ(level_of(parts, 1).kind, LevelKind::Tests);
  ASSERT_EQ(level_of(parts, 2).kind, LevelKind::Mixed);
  const char* const first = "groups section: group 0, tree 0";
  const char* const next = "level 2: a child does not follow those of the slot before";
  expect_refusals(
      good,
      {{"no slots", [&](ProgramParts& p) { level_of(p, 0).slots = 0; }, first, "level 0: its size is wrong"},
       {"129 slots", [&](ProgramParts& p) { level_of(p, 0).slots = 129; }, first,
        "level 0: its size is wrong"},
       {"no columns", [&](ProgramParts& p) { level_of(p, 1).columns = 0; }, first,
        "level 1: its size is wrong"},
       {"129 columns", [&](ProgramParts& p) { level_of(p, 1).columns = 129; }, first,
        "level 1: its size is wrong"},
       {"kind", [&](ProgramParts& p) { level_of(p, 0).kind = LevelKind{5}; }, first, "no such kind of level"},
       {"two roots", [&](ProgramParts& p) { level_of(p, 0).slots = 2; }, first, "more than one slot"},
       {"tables in the header", [&](ProgramParts& p) { level_of(p, 1).line = 0; }, first, "leave the tree"},
       {"tables behind the tree", [&](ProgramParts& p) { level_of(p, 1).line = p.trees[0].node_count; },
        first, "leave the tree"},
       {"tables that end behind the tree",
        [&](ProgramParts& p) {
          TableLevel& level = level_of(p, 2);
          const std::uint32_t bytes = level.list_bytes() + level.tables() * level.table_bytes();
          level.line = p.trees[0].node_count - bytes / 16 + 1;
        },
        first, "leave the tree"},
       {"a list longer than a row of codes",
        [&](ProgramParts& p) { level_of(p, 1).columns = static_cast<std::uint8_t>(p.columns.size() + 1); },
        first, "level 1: it lists more columns than the encoder has"},
       {"a tree not behind the one before", [&](ProgramParts& p) { ++p.trees[1].first_node; },
        "groups section: group 0, tree 1", "it does not follow the tree before"},
       {"tables far away", [&](ProgramParts& p) { level_of(p, 1).line = UINT32_MAX; }, first,
        "leave the tree"},
       {"a column", [&](ProgramParts& p) { change(tables_of(p, 1).list) = UINT32_MAX / 64 * 64; }, first,
        "level 1: a column does not exist"},
       {"a part of a column", [&](ProgramParts& p) { change(tables_of(p, 1).list) += 1; }, first,
        "level 1: a column does not exist"},
       {"a column that is not listed", [&](ProgramParts& p) { change(tables_of(p, 1).column + 1) = 2; },
        first, "level 1: a slot's column is not in its list"},
       {"a code", [&](ProgramParts& p) { change(tables_of(p, 1).code) = 254; }, first,
        "level 1: a code is above its column's ranks"},
       {"a leaf among tests", [&](ProgramParts& p) { change(tables_of(p, 1).code) = kNeverRight; }, first,
        "level 1: a leaf in a level of tests"},
       {"a slot twice", [&](ProgramParts& p) { change(tables_of(p, 2).child + 1) = 0; }, first, next},
       {"fewer slots below", [&](ProgramParts& p) { level_of(p, 1).slots = 1; }, first,
        "level 0: the level below has not as many slots"},
       {"no tables", [&](ProgramParts& p) { level_of(p, 1).kind = LevelKind::OneTest; }, first,
        "level 1: it has no tables, in a tree that has some"},
       {"the last retires leaves", [&](ProgramParts& p) { level_of(p, 2).kind = LevelKind::Retiring; }, first,
        "level 2: the last level retires leaves"},
       {"a leaf less", [&](ProgramParts& p) { p.trees[0].leaf_count = 6; }, first,
        "level 2: the level below has not as many slots"},
       {"no room for lookups", [&](ProgramParts& p) { p.groups[0].node_count -= 1; },
        "groups section: group 0", "ends too soon after its tables"},
       {"too many leaves", [&](ProgramParts& p) { p.trees[0].leaf_count = 257; }, first, "more than 256"},
       {"leaves without levels", [&](ProgramParts& p) { p.trees[1].leaf_count = 2; },
        "groups section: group 0, tree 1", "it has leaves, but no levels"},
       {"too deep", [&](ProgramParts& p) { p.trees[0].depth = 256; }, first, "deeper than a tree"},
       {"more levels than lines", [&](ProgramParts& p) { p.trees[0].depth = 255; }, first,
        "its levels leave it"}});
}

TEST(VerifyTableLevels, RefusesThoseThatPartWithLeaves) {
  // Six complete levels, and two splits in the next one, of 64 slots: one has a leaf and a split, the other
  // two leaves. With 66 slots in the level below, the level retires its leaves, all 65 except the leaves of
  // the one split there.
  unsigned made = 0;
  const std::function<Tree(unsigned)> complete = [&](unsigned depth) {
    if (depth != 0) {
      const Tree left = complete(depth - 1);
      return split(depth % 3, depth, left, complete(depth - 1));
    }
    const unsigned i = made++;
    if (i == 1) return split(1, 7, leaf(i), split(2, 8, leaf(0.5), leaf(i)));
    return i == 3 ? split(0, 9, leaf(i), leaf(0)) : leaf(i);
  };
  const ProgramParts good = parts_of(compiled(support::model_of({complete(6)}), "encode(u8)"));
  ProgramParts parts = good;
  ASSERT_EQ(level_of(parts, 5).kind, LevelKind::Tests);
  ASSERT_EQ(level_of(parts, 6).kind, LevelKind::Retiring);
  ASSERT_EQ(level_of(parts, 7).kind, LevelKind::Later);
  ASSERT_EQ(level_of(parts, 7).slots, 1);
  ASSERT_EQ(tables_of(parts, 6).child[0], 2);
  ASSERT_EQ(tables_of(parts, 6).child[1], 3);
  ASSERT_EQ(tables_of(parts, 6).by[1], 256 - 3);
  const char* const first = "groups section: group 0, tree 0";
  const char* const next = "level 6: a child does not follow those of the slot before";
  expect_refusals(
      good,
      {{"a leaf that the level below has", [&](ProgramParts& p) { change(tables_of(p, 6).child) = 1; }, first,
        next},
       {"a leaf twice", [&](ProgramParts& p) { change(tables_of(p, 6).child + 2) = 3; }, first, next},
       {"a leaf of no tree", [&](ProgramParts& p) { change(tables_of(p, 6).child + 63) = 67; }, first, next},
       {"a leaf that stays", [&](ProgramParts& p) { change(tables_of(p, 6).child) = 0; }, first,
        "level 6: a leaf stays that its level retires"},
       {"a test that does not", [&](ProgramParts& p) { change(tables_of(p, 6).by + 1) = 1; }, first, next},
       {"another distance", [&](ProgramParts& p) { change(tables_of(p, 6).by + 3) = 2; }, first, next},
       {"a leaf for a test",
        [&](ProgramParts& p) {
          change(tables_of(p, 6).code + 3) = kNeverRight;
          change(tables_of(p, 6).by + 3) = 0;
        },
        first, next},
       {"no walk has arrived", [&](ProgramParts& p) { level_of(p, 7).kind = LevelKind::Mixed; }, first,
        "level 7: a level above has retired leaves"},
       {"tests below", [&](ProgramParts& p) { level_of(p, 7).kind = LevelKind::Tests; }, first,
        "level 7: a level above has retired leaves"},
       {"a slot below that is not a child",
        [&](ProgramParts& p) {
          level_of(p, 7).slots = 2;
          for (std::uint32_t slot = 0; slot < level_of(p, 6).slots; ++slot)
            if (tables_of(p, 6).child[slot] != 0) ++change(tables_of(p, 6).child + slot);
          --change(tables_of(p, 6).by + 1);  // the right child stays slot 0
        },
        first, "level 6: the level below has not as many slots as it has children"},
       {"two slots below", [&](ProgramParts& p) { level_of(p, 7).slots = 2; }, first, next},
       {"more slots below than children", [&](ProgramParts& p) { level_of(p, 7).slots = 100; }, first,
        "level 6: the level below has other slots than its tests"},
       {"few leaves", [&](ProgramParts& p) { p.trees[0].leaf_count = 64; }, first,
        "level 6: the level below has other slots than its tests"}});
}

TEST(VerifyTableLevels, RefusesTreeTables) {
  const ProgramParts good = parts_of(compiled(three_levels(), "encode(u8); layout(tree, treeTables)"));
  ProgramParts parts = good;
  ASSERT_EQ(level_of(parts, 0).kind, LevelKind::Tree);
  ASSERT_EQ(level_of(parts, 0).slots, 6);
  ASSERT_EQ(tables_of(parts, 0).child[1], 6) << "the first leaf";
  ASSERT_EQ(tables_of(parts, 0).by[1], 256 - 3) << "back to slot 3";
  const char* const first = "groups section: group 0, tree 0";
  const char* const next = "level 0: a child does not follow those of the slot before";
  expect_refusals(
      good,
      {{"levels", [&](ProgramParts& p) { level_of(p, 0).kind = LevelKind::Retiring; }, first,
        "level 0: it is not the tables of a tree"},
       {"a test less", [&](ProgramParts& p) { level_of(p, 0).slots = 5; }, first,
        "level 0: it has not one test less than its tree has leaves"},
       {"no columns", [&](ProgramParts& p) { level_of(p, 0).columns = 0; }, first,
        "level 0: its size is wrong"},
       {"a list longer than a row of codes",
        [&](ProgramParts& p) { level_of(p, 0).columns = static_cast<std::uint8_t>(p.columns.size() + 1); },
        first, "level 0: it lists more columns than the encoder has"},
       {"tables in the header", [&](ProgramParts& p) { level_of(p, 0).line = 0; }, first, "leave the tree"},
       {"tables behind the tree", [&](ProgramParts& p) { level_of(p, 0).line = p.trees[0].node_count; },
        first, "leave the tree"},
       {"a column", [&](ProgramParts& p) { change(tables_of(p, 0).list) = UINT32_MAX / 64 * 64; }, first,
        "level 0: a column does not exist"},
       {"a column that is not listed", [&](ProgramParts& p) { change(tables_of(p, 0).column + 1) = 3; },
        first, "level 0: a slot's column is not in its list"},
       {"a code", [&](ProgramParts& p) { change(tables_of(p, 0).code) = 254; }, first,
        "level 0: a code is above its column's ranks"},
       {"a leaf", [&](ProgramParts& p) { change(tables_of(p, 0).code) = kNeverRight; }, first,
        "level 0: a leaf in a level of tests"},
       {"a slot twice", [&](ProgramParts& p) { change(tables_of(p, 0).by) = 0; }, first, next},
       {"a slot left out", [&](ProgramParts& p) { change(tables_of(p, 0).child) = 2; }, first, next},
       {"a leaf twice", [&](ProgramParts& p) { change(tables_of(p, 0).by + 5) = 0; }, first, next},
       {"a leaf of no tree", [&](ProgramParts& p) { change(tables_of(p, 0).by + 5) = 2; }, first, next},
       {"the root's children are leaves", [&](ProgramParts& p) { change(tables_of(p, 0).child) = 6; }, first,
        "level 0: no slot before leads to a slot"},
       {"too few steps", [&](ProgramParts& p) { p.trees[0].depth = 2; }, first,
        "level 0: its depth is not that of its deepest leaf"},
       {"steps after the deepest leaf", [&](ProgramParts& p) { p.trees[0].depth = 4; }, first,
        "level 0: its depth is not that of its deepest leaf"},
       {"steps without end", [&](ProgramParts& p) { p.trees[0].depth = UINT32_MAX; }, first,
        "level 0: its depth is not that of its deepest leaf"},
       {"no steps", [&](ProgramParts& p) { p.trees[0].depth = 0; }, first,
        "its depth is not that of its leaves"},
       {"steps to a leaf", [&](ProgramParts& p) { p.trees[1].depth = 1; }, "groups section: group 0, tree 1",
        "its depth is not that of its leaves"},
       {"too many leaves", [&](ProgramParts& p) { p.trees[0].leaf_count = 66; }, first, "more than 65"},
       {"no room for lookups", [&](ProgramParts& p) { p.groups[0].node_count -= 1; },
        "groups section: group 0", "ends too soon after its tables"}});
}

/// Returns a complete tree in which all tests have different thresholds, except that leaf 1 is a split.
Tree complete(unsigned depth, unsigned& made) {
  if (depth != 0) {
    const Tree left = complete(depth - 1, made);
    const unsigned feature = depth % 3 * 2 + made / 2 % 2;
    return split(feature, depth + 10. * made, left, complete(depth - 1, made));
  }
  const unsigned i = made++;
  return i == 1 ? split(1, -1, leaf(i), leaf(0.5)) : leaf(i);
}

TEST(VerifyTableLevels, RefusesTopTables) {
  unsigned made = 0;
  Model model = support::model_of({complete(9, made), leaf(3)});
  model.num_features = 6;
  const ProgramParts good = parts_of(compiled(model, "encode(u8); layout(tree, topTables)"));
  const auto lines = [](ProgramParts& p) { return nodes_of<TableLine>(p, 0); };
  const auto header = [&](ProgramParts& p) -> TopTablesHeader& {
    return *reinterpret_cast<TopTablesHeader*>(lines(p));
  };
  const auto node = [&](ProgramParts& p, std::uint32_t i) -> std::uint32_t& {
    return reinterpret_cast<Sparse4View::Node*>(lines(p) + header(p).nodes_line)[i].word;
  };
  const auto top = [&](ProgramParts& p, std::uint32_t i) -> TableLevel& {
    return reinterpret_cast<TableLevel*>(lines(p) + 1)[i];
  };
  const std::uint32_t distance = 1u << Sparse4View::kDistanceShift, number = 1u << Sparse4View::kLeafShift;
  ProgramParts parts = good;
  ASSERT_EQ(header(parts).levels, 8u);
  ASSERT_EQ(header(parts).exits, 256u);
  ASSERT_EQ(header(parts).nodes, 256u + 512 + 2);
  ASSERT_EQ(node(parts, 256) & 0xff, kNeverRight) << "the first leaf";
  ASSERT_NE(node(parts, 257) & 0xff, kNeverRight) << "the split in the last level but one";
  ASSERT_EQ(parts.trees[0].depth, 10u);
  const char* const first = "groups section: group 0, tree 0";
  const char* const ends = "its nodes do not end where it ends";
  expect_refusals(
      good, {{"nodes in the header", [&](ProgramParts& p) { header(p).nodes_line = 0; }, first, ends},
             {"nodes far away", [&](ProgramParts& p) { header(p).nodes_line = UINT32_MAX; }, first, ends},
             {"nodes a line later", [&](ProgramParts& p) { ++header(p).nodes_line; }, first, ends},
             {"no nodes", [&](ProgramParts& p) { header(p).nodes = 0; }, first, ends},
             {"more nodes than memory", [&](ProgramParts& p) { header(p).nodes = UINT32_MAX; }, first, ends},
             {"fewer nodes than exits", [&](ProgramParts& p) { header(p).exits = 771; }, first,
              "it has fewer nodes than exits"},
             {"too many exits", [&](ProgramParts& p) { header(p).exits = 257; }, first, "more than 256"},
             {"no exits", [&](ProgramParts& p) { header(p).exits = 0; }, first, "it has no leaves"},
             {"a single exit", [&](ProgramParts& p) { header(p).exits = 1; }, first,
              "its tables have a single exit"},
             {"exits without levels", [&](ProgramParts& p) { header(p).levels = 0; }, first,
              "it has leaves, but no levels"},
             {"too many levels", [&](ProgramParts& p) { header(p).levels = UINT32_MAX; }, first,
              "deeper than a tree"},
             {"a level less", [&](ProgramParts& p) { header(p).levels = 7; }, first,
              "level 6: the level below has not as many slots as it has children"},
             {"an exit less", [&](ProgramParts& p) { header(p).exits = 255; }, first,
              "level 7: the level below has not as many slots as it has children"},
             {"tables among the nodes", [&](ProgramParts& p) { top(p, 7).line = header(p).nodes_line - 1; },
              first, "level 7: its tables leave the tree"},
             {"a level of one test", [&](ProgramParts& p) { top(p, 7).kind = LevelKind::OneTest; }, first,
              "level 7: it has no tables, in a tree that has some"},
             {"a column", [&](ProgramParts& p) { node(p, 0) |= 0xfffu << Sparse4View::kColumnShift; }, first,
              "node 0: its column does not exist"},
             {"a code", [&](ProgramParts& p) { node(p, 1) = (node(p, 1) & ~0xffu) | 254; }, first,
              "node 1: its code is above its column's ranks"},
             {"a child later", [&](ProgramParts& p) { node(p, 2) += distance; }, first,
              "node 2: its children do not follow those of the split before"},
             {"a child before", [&](ProgramParts& p) { node(p, 255) -= distance; }, first,
              "node 255: its children do not follow those of the split before"},
             {"a split twice", [&](ProgramParts& p) { node(p, 257) -= 2 * distance; }, first,
              "node 257: its children do not follow those of the split before"},
             {"a leaf for a split", [&](ProgramParts& p) { node(p, 255) = kNeverRight; }, first,
              "node 256: a leaf's number does not follow the leaf before"},
             {"a leaf twice", [&](ProgramParts& p) { node(p, 259) -= number; }, first,
              "node 259: a leaf's number does not follow the leaf before"},
             {"a leaf of another tree", [&](ProgramParts& p) { node(p, 769) += number; }, first,
              "node 769: a leaf's number does not follow the leaf before"},
             {"a split for the last leaf",
              [&](ProgramParts& p) { node(p, 769) = (node(p, 0) & ~(0xfffu * distance)) | distance; }, first,
              "it has other nodes than its splits have children"},
             {"a leaf more", [&](ProgramParts& p) { --p.trees[0].leaf_count, ++p.trees[1].leaf_count; },
              first, "it has other leaves than its record says"},
             {"too few steps", [&](ProgramParts& p) { p.trees[0].depth = 9; }, first,
              "its depth is not that of its deepest leaf"},
             {"steps without end", [&](ProgramParts& p) { p.trees[0].depth = UINT32_MAX; }, first,
              "its depth is not that of its deepest leaf"},
             {"steps to a leaf", [&](ProgramParts& p) { p.trees[1].depth = 1; },
              "groups section: group 0, tree 1", "its depth is not that of its deepest leaf"},
             {"no room for lookups", [&](ProgramParts& p) { p.groups[0].node_count -= 1; },
              "groups section: group 0", "ends too soon after its tables"}});
}

TEST(VerifyTableLevels, RefusesObliviousTrees) {
  const auto below = [](double value) { return split(1, 2, leaf(value), leaf(0)); };
  const Model model = support::model_of({split(0, 1, below(1), below(2)), leaf(3)});
  const ProgramParts good = parts_of(compiled(model, "encode(u8)"));
  ASSERT_TRUE(TablesView::is_oblivious(good.trees[0]));
  ASSERT_FALSE(TablesView::is_oblivious(good.trees[1]));
  const char* const first = "groups section: group 0, tree 0";
  expect_refusals(
      good, {{"no such column", [&](ProgramParts& p) { level_of(p, 1).line = UINT32_MAX / 64 * 64; }, first,
              "level 1: a column does not exist"},
             {"the column after the last",
              [&](ProgramParts& p) {
                level_of(p, 1).line = static_cast<std::uint32_t>(p.columns.size()) * kCodeRows;
              },
              first, "level 1: a column does not exist"},
             {"a part of a column", [&](ProgramParts& p) { level_of(p, 1).line += 1; }, first,
              "level 1: a column does not exist"},
             {"a code", [&](ProgramParts& p) { ++level_of(p, 1).columns; }, first,
              "level 1: a code is above its column's ranks"},
             {"a leaf's code", [&](ProgramParts& p) { level_of(p, 0).columns = kNeverRight; }, first,
              "level 0: a code is above its column's ranks"},
             {"tables",
              [&](ProgramParts& p) { level_of(p, 1).kind = LevelKind::Tests, level_of(p, 1).columns = 1; },
              first, "level 1: its tables leave the tree"},
             {"three leaves", [&](ProgramParts& p) { p.trees[0].leaf_count = 3; }, first,
              "level 1: the level below has not as many slots"},
             {"one slot below the root", [&](ProgramParts& p) { level_of(p, 1).slots = 1; }, first,
              "level 0: the level below has not as many slots"}});
}

}  // namespace
}  // namespace forestvm::test::test_verify_table_levels
