// The verifier's rules for the trees and nodes of each layout, behind one type, so that what verifies groups
// is compiled once and not for each layout. What a node may say stands in the layout's view (kNodeRules), because
// a rule speaks of the bits that the view's other functions take apart, and no kernel calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/forest_data.hpp>

#include "vm/program/verify/links.hpp"

namespace forestvm::bytecode {

struct LayoutRules {
  std::size_t node_bytes;
  unsigned tile_width;
  bool leaves_aside;
  /// Returns what is wrong with the first node of a group's tree, which `nodes_before` nodes of the group precede;
  /// null if nothing is.
  const char* (*first_node_rule)(const TreeDesc&, std::uint32_t index, const GroupDesc&,
                                 std::uint64_t nodes_before);
  /// Returns what is wrong with a tree's record; null if nothing is. The pointer is null if the layout has no such
  /// rule.
  const char* (*tree_rule)(const TreeDesc&, const GroupDesc&);
  /// Returns what is wrong with the nodes of a tree, given by its index in the group; an empty text if nothing
  /// is.
  std::string (*defect)(const GroupData&, std::uint32_t index, const NodeFacts&, LinkMemory&);
};

/// Returns the rules of a declared layout.
const LayoutRules& layout_rules(Layout layout);

}  // namespace forestvm::bytecode
