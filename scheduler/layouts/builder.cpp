// Builder dispatch, from the rows of layouts.def.
#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {

LayoutSize layout_size(const TiledForest& forest, const TreeGroup& group) {
  switch (group.layout) {
#define FVM_LAYOUT(Name, text, word, View, meaning) \
  case Layout::Name:                                \
    return size_##Name(forest, group);
#include <forestvm/core/layouts.def>
  }
  return {};
}

std::optional<std::string> misfit(const TiledForest& forest, const TreeGroup& group) {
  switch (group.layout) {
#define FVM_LAYOUT(Name, text, word, View, meaning) \
  case Layout::Name:                                \
    return misfit_##Name(forest, group);
#include <forestvm/core/layouts.def>
  }
  return std::nullopt;
}

BuiltGroup build(const TiledForest& forest, const TreeGroup& group) {
  switch (group.layout) {
#define FVM_LAYOUT(Name, text, word, View, meaning) \
  case Layout::Name:                                \
    return build_##Name(forest, group);
#include <forestvm/core/layouts.def>
  }
  return {};
}

}  // namespace forestvm::scheduler
