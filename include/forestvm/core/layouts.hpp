// The views of all layouts, for code that goes over the rows of layouts.def.
#pragma once

#include <cstddef>

#include <forestvm/core/layout/array.hpp>
#include <forestvm/core/layout/array4.hpp>
#include <forestvm/core/layout/reorg.hpp>
#include <forestvm/core/layout/sparse12.hpp>
#include <forestvm/core/layout/sparse16.hpp>
#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/sparse8.hpp>
#include <forestvm/core/layout/sparse_tiles.hpp>
#include <forestvm/core/layout/tables.hpp>
#include <forestvm/core/layout/top_tables.hpp>
#include <forestvm/core/layout/tree_tables.hpp>

namespace forestvm {

/// Calls visit.operator()<View>() with the view of a declared layout.
template <class Visit>
FVM_HOST_DEVICE constexpr decltype(auto) with_view(Layout layout, Visit&& visit) {
  switch (layout) {
#define FVM_LAYOUT(number, Name, text, word, View, meaning) \
  case Layout::Name:                                        \
    return visit.template operator()<View>();
#include <forestvm/core/layouts.def>
  }
  __builtin_unreachable();  // verified
}

// The functions below capture by reference, although they use nothing, because nvcc warns of lambdas that are templates
// and could become pointers to functions.

/// Returns the bytes of a node of a declared layout.
constexpr std::size_t node_size(Layout layout) {
  return with_view(layout, [&]<class View>() { return sizeof(typename View::Node); });
}

/// Returns what walks need to know of a group. `nodes` and `trees` are where a program's nodes and records of
/// trees begin.
inline GroupData group_data(const GroupDesc& group, const std::byte* nodes, const TreeDesc* trees,
                            const std::uint8_t* exits) {
  const std::byte* const first = nodes + group.node_offset;
  return {first,
          reinterpret_cast<const float*>(first + group.node_count * node_size(group.layout)),
          trees + group.first_tree,
          exits,
          group.tree_end - group.tree_begin,
          group.tile_size};
}

/// True if a view's walks read rank codes, and not the rows' values.
template <class View>
inline constexpr bool kTakesCodes = requires {
  requires View::kCoded;
};

constexpr bool takes_codes(Layout layout) {
  return with_view(layout, [&]<class View>() { return kTakesCodes<View>; });
}

/// Returns whether walks in this layout may take more steps than a tree is deep, because a walk stays at a
/// leaf.
constexpr bool leaves_hold_still(Layout layout) {
  return with_view(layout, [&]<class View>() { return View::kLeavesHoldStill; });
}

}  // namespace forestvm
