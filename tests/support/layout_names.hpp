// The names of layouts in schedules, from the rows of layouts.def, so that new layouts are tested without
// being listed anywhere.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <forestvm/core/layouts.hpp>

namespace forestvm::support {

inline std::vector<std::string> layout_names() {
  std::vector<std::string> names;
  const auto add = [&](const char* name, unsigned tile_width) {
    if (tile_width == 1 && std::find(names.begin(), names.end(), name) == names.end())
      names.emplace_back(name);
  };
#define FVM_LAYOUT(number, Name, text, word, View, meaning) \
  add(word, View::kTileWidth);                              \
  add(text, View::kTileWidth);
#include <forestvm/core/layouts.def>
  return names;
}

}  // namespace forestvm::support
