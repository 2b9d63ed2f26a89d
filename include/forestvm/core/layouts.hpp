// Every layout's view, one line each, for code that goes over the rows of layouts.def.
#pragma once

#include <forestvm/core/layout/array.hpp>
#include <forestvm/core/layout/sparse.hpp>

namespace forestvm {

/// Whether walks in this layout may take more hops than a tree is deep: see the views.
FVM_HOST_DEVICE constexpr bool leaves_hold_still(Layout layout) {
  switch (layout) {
#define FVM_LAYOUT(Name, text, View, meaning) \
  case Layout::Name:                          \
    return View::kLeavesHoldStill;
#include <forestvm/core/layouts.def>
  }
  return false;
}

}  // namespace forestvm
