// Builder dispatch, from the rows of layouts.def.
#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {

void set_number(BuiltGroup& built, const TiledForest& forest, std::size_t place, const Tree& tree,
                std::int32_t leaf) {
  if (built.numbers.size() <= place) built.numbers.resize(place + 1);
  built.numbers[place] = static_cast<std::uint32_t>(leaf_number(tree, static_cast<std::size_t>(leaf)));
  if (forest.model().score_type != ScalarType::Float64) return;
  built.wide_leaves.resize(built.numbers.size());
  built.wide_leaves[place] = leaf_output<double>(tree, leaf);
}

LayoutSize layout_size(const TiledForest& forest, const TreeGroup& group) {
  switch (group.layout) {
#define FVM_LAYOUT(number, Name, text, word, View, meaning) \
  case Layout::Name:                                        \
    return size_##Name(forest, group);
#include <forestvm/core/layouts.def>
  }
  return {};
}

std::optional<std::string> misfit(const TiledForest& forest, const TreeGroup& group) {
  switch (group.layout) {
#define FVM_LAYOUT(number, Name, text, word, View, meaning) \
  case Layout::Name:                                        \
    return misfit_##Name(forest, group);
#include <forestvm/core/layouts.def>
  }
  return std::nullopt;
}

BuiltGroup build(const TiledForest& forest, const TreeGroup& group) {
  switch (group.layout) {
#define FVM_LAYOUT(number, Name, text, word, View, meaning) \
  case Layout::Name:                                        \
    return build_##Name(forest, group);
#include <forestvm/core/layouts.def>
  }
  return {};
}

}  // namespace forestvm::scheduler
