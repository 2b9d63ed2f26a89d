// The verifier's rules for trees whose nodes name their children: each node is the child of one other at
// most, some node leads to each split, and the deepest leaf is as deep as the tree's record says. Children
// lie inside their tree and after their parents: that was verified before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/tile.hpp>
#include <forestvm/internal/formatted.hpp>

namespace forestvm::bytecode {

/// True if a layout's nodes name their children. In other layouts a rule says where the children are.
template <class View>
inline constexpr bool kNamesChildren = View::kLeavesHoldStill && !requires {
  &View::level_rule;
};

/// Memory that the trees of a group use in turn: the level of each node. It is 1 at the root, and 0 for a node as
/// long as no other leads to it.
using LinkMemory = std::vector<std::uint8_t>;

/// Calls visit(child) for the children of a node that are nodes themselves.
template <class View, class Visit>
void for_children(const typename View::Tree& view, std::uint32_t slot, const NodeFacts& facts,
                  Visit&& visit) {
  if constexpr (View::kTileWidth == 1) {
    if (View::is_leaf(view, slot)) return;
    for (unsigned branch = 0; branch < 2; ++branch) visit(View::child(view, slot, branch));
  } else {
    const unsigned exits = shape_size(View::shape(view, slot), facts) + 1u;
    for (unsigned exit = 0; exit < exits; ++exit)
      if (const std::uint32_t child = View::child(view, slot, exit); !View::is_leaf(view, child))
        visit(child);
  }
}

/// Returns whether `with_level` nodes have a level, and the deepest has level `deepest`. A level that does not fit
/// its type became zero, so that nodes are missing then, too.
[[gnu::noinline]] inline bool are_levels_sound(std::span<const std::uint8_t> levels, std::uint32_t with_level,
                                               std::uint32_t deepest) {
  std::uint32_t reached = 0;
  std::uint8_t highest = 0;
  for (const std::uint8_t level : levels) reached += static_cast<std::uint32_t>(level != 0);
  for (const std::uint8_t level : levels) highest = std::max(highest, level);
  return reached == with_level && highest == deepest;
}

/// Returns whether the links of a tree of single nodes, of depth below 255, obey the rules, at memory speed.
/// Splits are listed without branches, because nothing predicts which nodes are leaves. A node with two parents
/// has one level, so that fewer nodes have a level than the splits have children.
template <class View>
bool are_node_links_sound(const typename View::Tree view, const TreeDesc& tree, LinkMemory& memory) {
  constexpr std::uint32_t kListed = 128;
  const std::uint32_t count = tree.node_count;
  memory.assign(count, 0);
  std::uint8_t* const levels = memory.data();
  levels[0] = 1;
  std::uint32_t splits = 0;
  bool orphan = false;
  for (std::uint32_t begin = 0; begin < count; begin += kListed) {
    std::uint32_t listed[kListed];
    std::uint32_t listed_count = 0;
    for (std::uint32_t slot = begin; slot < std::min(count, begin + kListed); ++slot) {
      listed[listed_count] = slot;
      listed_count += View::is_leaf(view, slot) ? 0u : 1u;
    }
    for (std::uint32_t i = 0; i < listed_count; ++i) {
      const std::uint32_t slot = listed[i];
      const std::uint32_t left = View::child(view, slot, 0), right = View::child(view, slot, 1);
      const std::uint8_t level = levels[slot];
      levels[left] = levels[right] = static_cast<std::uint8_t>(level + 1);
      orphan |= level == 0;
    }
    splits += listed_count;
  }
  return !orphan && are_levels_sound({levels, count}, 2 * splits + 1, tree.depth + 1);
}

/// Returns what is wrong with the links of a tree; an empty text if nothing is.
template <class View>
[[gnu::cold]] std::string broken_link(const typename View::Tree& view, const TreeDesc& tree,
                                      const NodeFacts& facts) {
  std::vector<std::uint32_t> levels(tree.node_count);
  levels[0] = 1;
  std::uint32_t depth = 0;
  for (std::uint32_t slot = 0; slot < tree.node_count; ++slot) {
    const auto node = [slot](const char* what) { return formatted("node {}: {}", slot, what); };
    bool taken = false, inner = View::kTileWidth > 1;
    for_children<View>(view, slot, facts, [&](std::uint32_t child) {
      inner = true;
      taken = taken || levels[child] != 0;
      levels[child] = levels[slot] + 1;
    });
    if (taken) return node("a child has another parent too");
    if (inner && levels[slot] == 0) return node("no other node leads to it");
    // A node's leaves are one step further on.
    if (inner) depth = std::max(depth, levels[slot]);
  }
  if (depth == tree.depth) return {};
  return formatted("its deepest leaf is at depth {}, its record says {}", depth, tree.depth);
}

template <class View>
bool are_links_sound(const typename View::Tree& view, const TreeDesc& tree, const NodeFacts& facts,
                     LinkMemory& memory) {
  if constexpr (View::kTileWidth == 1)
    if (tree.depth < UINT8_MAX) return are_node_links_sound<View>(view, tree, memory);
  return broken_link<View>(view, tree, facts).empty();
}

}  // namespace forestvm::bytecode
