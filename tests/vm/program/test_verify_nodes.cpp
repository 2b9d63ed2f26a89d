// The verifier checks many nodes at a time and finds out afterwards which one is bad. Breaks each rule of
// each layout in one slot after the other, with the first and last slots of trees of several sizes among
// them.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <forestvm/core/layouts.hpp>

#include "vm/breach.hpp"

namespace forestvm::test::test_verify_nodes {
namespace {

/// Trees of 127, 15 and 13 nodes, repeated.
constexpr ForestShape kShape{.depth = 6};
constexpr std::uint32_t kTrees = 3;  ///< number of trees in which to break something

ProgramParts laid_out(const char* schedule) { return parts_of(compiled(small_forest(kShape), schedule)); }

/// A rule, and a function that breaks it in a slot or returns false if it cannot.
template <class Node>
struct NodeBreach {
  const char* rule;
  std::function<bool(Node&, std::uint32_t slot, const TreeDesc&)> damage;
};

template <class View>
using NodeBreaches = std::vector<NodeBreach<typename View::Node>>;

void expect_refusal_in(const ProgramParts& parts, std::uint32_t tree, const std::string& message) {
  expect_refusal(parts, ("groups section: group 0, tree " + std::to_string(tree)).c_str(), message.c_str());
}

template <class View>
void expect_found_in_every_slot(const char* schedule, const NodeBreaches<View>& breaches) {
  SCOPED_TRACE(schedule);
  const ProgramParts good = laid_out(schedule);
  std::uint32_t stride = 1;
  if constexpr (requires { requires View::kInterleaved; }) stride = kShape.trees;
  for (const auto& breach : breaches) {
    unsigned broken = 0;
    for (std::uint32_t t = 0; t < kTrees; ++t)
      for (std::uint32_t slot = 0; slot < good.trees[t].node_count; ++slot) {
        ProgramParts parts = good;
        const TreeDesc& tree = parts.trees[t];
        auto& node = nodes_of<typename View::Node>(parts, 0)[tree.first_node + slot * stride];
        if (!breach.damage(node, slot, tree)) continue;
        ++broken;
        expect_refusal_in(parts, t, "node " + std::to_string(slot) + ": " + breach.rule);
        if (testing::Test::HasFailure()) return;
      }
    EXPECT_GE(broken, kTrees) << breach.rule;
  }
}

template <class View>
void expect_bad_level_order_nodes_found(const char* schedule) {
  expect_found_in_every_slot<View>(schedule, {{"its feature lies outside the row",
                                               [](LevelOrderNode& node, auto, auto&) {
                                                 node.feature |= kShape.features;
                                                 return true;
                                               }},
                                              {"a slot of the last level is no leaf",
                                               [](LevelOrderNode& node, auto slot, const TreeDesc& tree) {
                                                 node.feature &= ~kLeaf;
                                                 return slot >= tree.node_count / 2;
                                               }}});
}

TEST(VerifyNodes, LevelOrder) {
  expect_bad_level_order_nodes_found<ArrayView>("layout(tree, array)");
  expect_bad_level_order_nodes_found<ReorgView>("layout(tree, reorg)");
}

bool is_leaf_word(std::uint32_t feature_word) { return (feature_word & kLeaf) != 0; }

/// Returns the breaches for layouts whose nodes have a feature word and the left child's index. `leaf_feature` and
/// `leaf_children` are the texts of their rules for leaves.
template <class View>
NodeBreaches<View> breaches_of_indices(const char* leaf_feature, const char* leaf_children) {
  using Node = typename View::Node;
  // A right child without an index of its own follows the left one and is the first to be out of bounds.
  constexpr bool kRightHasIndex = requires(Node node) { node.right; };
  return {{leaf_feature,
           [](Node& node, auto, auto&) {
             node.feature |= 1;
             return is_leaf_word(node.feature);
           }},
          {leaf_children,
           [](Node& node, auto, auto&) {
             ++node.left;
             return is_leaf_word(node.feature);
           }},
          {"its feature lies outside the row",
           [](Node& node, auto, auto&) {
             node.feature |= kShape.features;
             return !is_leaf_word(node.feature);
           }},
          {"a child does not come after its parent",
           [](Node& node, auto slot, auto&) {
             node.left = slot;
             return !is_leaf_word(node.feature);
           }},
          {"a child lies outside its tree",
           [](Node& node, auto, const TreeDesc& tree) {
             node.left = kRightHasIndex ? tree.node_count : tree.node_count - 1;
             return !is_leaf_word(node.feature);
           }},
          {"a child lies outside its tree", [](Node& node, auto, auto&) {
             node.left = UINT32_MAX;
             return !is_leaf_word(node.feature);
           }}};
}

TEST(VerifyNodes, Sparse16) {
  using Node = Sparse16View::Node;
  const char* const leaf_children = "a leaf's children are not itself";
  auto breaches = breaches_of_indices<Sparse16View>("a leaf tests a feature", leaf_children);
  breaches.insert(breaches.end(), {{leaf_children,
                                    [](Node& node, auto, auto&) {
                                      ++node.right;
                                      return is_leaf_word(node.feature);
                                    }},
                                   {"a child does not come after its parent",
                                    [](Node& node, auto slot, auto&) {
                                      node.right = slot;
                                      return !is_leaf_word(node.feature);
                                    }},
                                   {"a child lies outside its tree", [](Node& node, auto, auto&) {
                                      node.right = UINT32_MAX;
                                      return !is_leaf_word(node.feature);
                                    }}});
  expect_found_in_every_slot<Sparse16View>("layout(tree, sparse16)", breaches);
}

TEST(VerifyNodes, Sparse12) {
  const char* const leaf = "a leaf tests a feature or has children";
  expect_found_in_every_slot<Sparse12View>("layout(tree, sparse12)",
                                           breaches_of_indices<Sparse12View>(leaf, leaf));
}

TEST(VerifyNodes, Sparse8) {
  using Node = Sparse8View::Node;
  const auto is_leaf = [](const Node& node) { return (node.word & kLeaf) != 0; };
  expect_found_in_every_slot<Sparse8View>(
      "layout(tree, sparse8)",
      {{"a leaf tests a feature or has children",
        [&](Node& node, auto, auto&) {
          node.word |= 1;
          return is_leaf(node);
        }},
       {"its feature lies outside the row",
        [&](Node& node, auto, auto&) {
          node.word |= kShape.features << Sparse8View::kDistanceBits;
          return !is_leaf(node);
        }},
       {"a child does not come after its parent",
        [&](Node& node, auto, auto&) {
          node.word &= ~Sparse8View::kDistanceMask;
          return !is_leaf(node);
        }},
       {"a child lies outside its tree", [&](Node& node, auto slot, const TreeDesc& tree) {
          // The left child is the tree's last node.
          node.word = (node.word & ~Sparse8View::kDistanceMask) | (tree.node_count - 1 - slot);
          return !is_leaf(node);
        }}});
}

TEST(VerifyNodes, Sparse4) {
  using View = Sparse4View;
  using Node = View::Node;
  const char* const schedule = "layout(tree, sparse); encode(u8)";
  const auto columns = static_cast<std::uint32_t>(laid_out(schedule).columns.size());
  const auto leaf = [](std::uint32_t number) { return number << View::kLeafShift | kNeverRight; };
  const auto with = [](Node& node, std::uint32_t mask, std::uint32_t bits) {
    node.word = (node.word & ~mask) | bits;
    return !node.is_leaf();
  };
  const std::uint32_t distance = View::kMaxDistance << View::kDistanceShift;
  expect_found_in_every_slot<View>(
      schedule, {{"a leaf lies outside its tree",
                  [&](Node& node, auto, const TreeDesc& tree) {
                    node.word = leaf(tree.first_leaf + tree.leaf_count);
                    return true;
                  }},
                 {"a leaf lies outside its tree",
                  [&](Node& node, auto, const TreeDesc& tree) {
                    node.word = leaf(tree.first_leaf - 1);
                    return tree.first_leaf != 0;
                  }},
                 {"its column does not exist",
                  [&](Node& node, auto, auto&) {
                    return with(node, (View::kMaxColumns - 1) << View::kColumnShift,
                                columns << View::kColumnShift);
                  }},
                 {"its column does not exist",
                  [&](Node& node, auto, auto&) {
                    return with(node, 0, (View::kMaxColumns - 1) << View::kColumnShift);
                  }},
                 {"a child does not come after its parent",
                  [&](Node& node, auto, auto&) { return with(node, distance, 0); }},
                 {"a child lies outside its tree",
                  [&](Node& node, auto slot, const TreeDesc& tree) {
                    return with(node, distance, (tree.node_count - 1 - slot) << View::kDistanceShift);
                  }},
                 {"its code is above its column's ranks", [&](Node& node, auto, auto&) {
                    const bool split = !node.is_leaf();
                    return with(node, split ? 0xff : 0, split ? 0xfe : 0);
                  }}});
}

TEST(VerifyNodes, Array4) {
  using View = Array4View;
  using Node = View::Node;
  const char* const schedule = "layout(tree, array); encode(u8)";
  const auto columns = static_cast<std::uint32_t>(laid_out(schedule).columns.size());
  const auto with = [](Node& node, std::uint32_t mask, std::uint32_t bits, std::uint32_t slot,
                       const TreeDesc& tree) {
    node.word = (node.word & ~mask) | bits;
    return slot < tree.node_count / 2;
  };
  const auto code = [](std::uint32_t number) { return number << View::kCodeShift; };
  expect_found_in_every_slot<View>(
      schedule,
      {{"its column does not exist",
        [&](Node& node, auto slot, auto& tree) {
          return with(node, View::kColumnMask, columns, slot, tree);
        }},
       {"its column does not exist",
        [&](Node& node, auto slot, auto& tree) { return with(node, 0, View::kColumnMask, slot, tree); }},
       {"its code is above its column's ranks",
        [&](Node& node, auto slot, auto& tree) { return with(node, code(0xff), code(0xfe), slot, tree); }}});
}

/// A leaf may be any float, even if its bits look like a test.
TEST(VerifyNodes, Array4TakesAnyLeaf) {
  ProgramParts parts = laid_out("layout(tree, array); encode(u8)");
  for (const TreeDesc& tree : parts.trees)
    for (std::uint32_t slot = tree.node_count / 2; slot < tree.node_count; ++slot)
      nodes_of<Array4View::Node>(parts, 0)[tree.first_node + slot].word = UINT32_MAX - slot;
  const auto program = build_program(parts);
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().text());
}

TEST(VerifyNodes, SparseTiles) {
  using View = SparseTilesView<4>;
  using Node = View::Node;
  const auto goes_on = [](const Node& node) { return node.first_tile != 0; };
  expect_found_in_every_slot<View>(
      "tileTree(tree, 3, uniform); layout(tree, sparse)",
      {{"a feature lies outside the row",
        [](Node& node, auto, auto&) {
          node.features[0] |= kShape.features;
          return true;
        }},
       {"a feature lies outside the row",
        [](Node& node, auto, auto&) {
          node.features[3] = kShape.features;
          return true;
        }},
       {"there is no such tile shape",
        [](Node& node, auto, auto&) {
          node.shape = 0;
          return true;
        }},
       {"there is no such tile shape",
        [](Node& node, auto, auto&) {
          node.shape = UINT16_MAX;
          return true;
        }},
       {"a leaf stands at an exit",
        [](Node& node, auto, auto&) {
          node.leaf_exits |= 0x10;
          return true;
        }},
       {"a leaf lies outside its tree",
        [](Node& node, auto, const TreeDesc& tree) {
          node.first_leaf = tree.leaf_count;
          return node.leaf_exits != 0;
        }},
       {"a child does not come after its parent",
        [&](Node& node, auto slot, auto&) {
          const bool inner = goes_on(node);
          node.first_tile = slot;
          return inner;
        }},
       {"a child lies outside its tree", [&](Node& node, auto, const TreeDesc& tree) {
          const bool inner = goes_on(node);
          node.first_tile = tree.node_count;
          return inner;
        }}});
}

template <class View>
void expect_bad_level_order_tiles_found(const char* schedule) {
  using Node = typename View::Node;
  const auto is_leaf = [](const Node& node) { return node.shape == kLeaf; };
  expect_found_in_every_slot<View>(schedule, {{"a leaf tests a feature",
                                               [&](Node& node, auto, auto&) {
                                                 node.features[3] = 1;
                                                 return is_leaf(node);
                                               }},
                                              {"a slot of the last level is no leaf",
                                               [&](Node& node, auto slot, const TreeDesc& tree) {
                                                 node.shape = 1;
                                                 return slot * 4 + 1 >= tree.node_count;
                                               }},
                                              {"a feature lies outside the row",
                                               [&](Node& node, auto, auto&) {
                                                 node.features[2] = kShape.features;
                                                 return !is_leaf(node);
                                               }},
                                              {"there is no such tile shape", [&](Node& node, auto, auto&) {
                                                 const bool leaf = is_leaf(node);
                                                 node.shape = 0;
                                                 return !leaf;
                                               }}});
}

TEST(VerifyNodes, LevelOrderTiles) {
  expect_bad_level_order_tiles_found<ArrayTilesView<4>>("tileTree(tree, 3, uniform); layout(tree, array)");
  expect_bad_level_order_tiles_found<ReorgTilesView<4>>("tileTree(tree, 3, uniform); layout(tree, reorg)");
}

/// A slot of a tree in tables: its bytes.
struct TableSlot {
  const TableLevel& level;
  std::uint8_t& column;
  std::uint8_t& code;
  std::uint8_t& child;
};

struct TableBreach {
  const char* rule;
  std::function<bool(const TableSlot&)> damage;
};

TEST(VerifyNodes, Tables) {
  const ProgramParts good = laid_out("encode(u8)");
  const TableBreach breaches[] = {
      {"a slot's column is not in its list",
       [](const TableSlot& at) {
         if (at.level.columns == 1) return false;
         at.column = at.level.columns;
         return true;
       }},
      {"a code is above its column's ranks",
       [](const TableSlot& at) {
         if (at.code == kNeverRight) return false;
         at.code = kNeverRight - 1;
         return true;
       }},
      {"a leaf in a level of tests",
       [](const TableSlot& at) {
         if (!at.level.all_tests()) return false;
         at.code = kNeverRight;
         return true;
       }},
      {"a child does not follow those of the slot before",
       [](const TableSlot& at) {
         if (at.level.all_tests()) return false;
         ++at.child;
         return true;
       }},
  };
  for (const TableBreach& breach : breaches) {
    SCOPED_TRACE(breach.rule);
    unsigned broken = 0;
    for (std::uint32_t t = 0; t < kTrees; ++t)
      for (std::uint32_t i = 0; i < good.trees[t].depth; ++i)
        for (std::uint32_t slot = 0;; ++slot) {
          ProgramParts parts = good;
          TableLine* const lines = nodes_of<TableLine>(parts, 0) + parts.trees[t].first_node;
          const TableLevel& level = reinterpret_cast<const TableLevel*>(lines)[i];
          if (!level.has_tables() || slot == level.slots) break;
          const LevelTables tables(lines, level);
          const auto byte = [&](const std::uint8_t* table) -> std::uint8_t& {
            return const_cast<std::uint8_t*>(table)[slot];
          };
          if (!breach.damage({level, byte(tables.column), byte(tables.code), byte(tables.child)})) continue;
          ++broken;
          expect_refusal_in(parts, t, "level " + std::to_string(i) + ": " + breach.rule);
          if (HasFailure()) return;
        }
    EXPECT_GE(broken, kTrees);
  }
}

}  // namespace
}  // namespace forestvm::test::test_verify_nodes
