// Builder dispatch, from the rows of layouts.def.
#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {

void set_number(BuiltGroup& built, const TiledForest& forest, std::size_t slot, const Tree& tree,
                std::int32_t leaf) {
  if (built.numbers.size() <= slot) built.numbers.resize(slot + 1);
  built.numbers[slot] = static_cast<std::uint32_t>(leaf_number(tree, static_cast<std::size_t>(leaf)));
  if (forest.model().score_type != ScalarType::Float64) return;
  built.wide_leaves.resize(built.numbers.size());
  built.wide_leaves[slot] = leaf_output<double>(tree, leaf);
}

namespace {

/// The functions of a layout.
struct Builder {
  decltype(&layout_size) size;
  decltype(&forestvm::scheduler::build) build;
};

Builder builder(Layout layout) {
  switch (layout) {
#define FVM_LAYOUT(number, Name, text, word, View, meaning) \
  case Layout::Name:                                        \
    return {size_##Name, build_##Name};
#include <forestvm/core/layouts.def>
  }
  return {};
}

}  // namespace

Result<LayoutSize> layout_size(const TiledForest& forest, const TreeGroup& group) {
  return builder(group.layout).size(forest, group);
}

Result<BuiltGroup> build(const TiledForest& forest, const TreeGroup& group, const RankTable& ranks) {
  return builder(group.layout).build(forest, group, ranks);
}

}  // namespace forestvm::scheduler
