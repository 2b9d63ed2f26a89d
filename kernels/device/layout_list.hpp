// The layouts whose trees a kernel walks, and the choice of one of them.
#pragma once

#include <type_traits>

#include <forestvm/core/layouts.hpp>

#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// The layouts that a kernel walks.
template <class... Views>
struct LayoutList {
  static constexpr unsigned kCount = sizeof...(Views);
  static constexpr bool kTakesValues = kCount == 0 || (!forestvm::kTakesCodes<Views> || ...);
  static constexpr bool kTakesCodes = (forestvm::kTakesCodes<Views> || ...);
};

/// Calls visit.operator()<View>() with a layout's view, if the list has it.
template <class... Views, class Visit>
FVM_DEVICE void with_listed_view(LayoutList<Views...>, Layout layout, Visit&& visit) {
  if constexpr (sizeof...(Views) == 1) return (visit.template operator()<Views>(), ...);
  with_view(layout, [&]<class View>() {
    if constexpr ((std::is_same_v<View, Views> || ...)) visit.template operator()<View>();
  });
}

}  // namespace forestvm::kernels
