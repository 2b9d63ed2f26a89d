// What a layout's builder gives: how much memory a group of trees takes, whether the layout can hold it, and
// its nodes. One set of functions per row of layouts.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/layouts/test.hpp"
#include "scheduler/tiled_forest.hpp"

namespace forestvm::scheduler {

struct LayoutSize {
  std::uint64_t slots = 0;  ///< nodes or tiles with their padding; leaves aside count as one each
  std::uint64_t bytes = 0;
};

/// A group as it will lie in the program.
struct BuiltGroup {
  std::uint64_t node_count = 0;
  std::uint64_t leaf_count = 0;
  std::vector<std::byte> nodes;  ///< nodes or tiles, then the leaves that lie aside
  std::vector<TreeDesc> trees;
  std::vector<std::uint32_t> numbers;  ///< leaf numbers: for each leaf aside, or else for each node
  std::vector<double> wide_leaves;     ///< float64 models: their outputs, likewise
};

#define FVM_LAYOUT(number, Name, text, word, View, meaning)                                    \
  LayoutSize size_##Name(const TiledForest& forest, const TreeGroup& group);                   \
  /** Why the layout cannot hold these trees; nothing if it can. */                            \
  std::optional<std::string> misfit_##Name(const TiledForest& forest, const TreeGroup& group); \
  BuiltGroup build_##Name(const TiledForest& forest, const TreeGroup& group);
#include <forestvm/core/layouts.def>

/// The same by the group's layout.
LayoutSize layout_size(const TiledForest& forest, const TreeGroup& group);
std::optional<std::string> misfit(const TiledForest& forest, const TreeGroup& group);
BuiltGroup build(const TiledForest& forest, const TreeGroup& group);

/// A leaf's output as the walkers add it: DART weight and value multiplied in the type of the scores.
template <class Score>
Score leaf_output(const Tree& tree, std::int32_t leaf) {
  return static_cast<Score>(tree.weight) *
         static_cast<Score>(tree.nodes[static_cast<std::size_t>(leaf)].value);
}

/// The same as float32, which float64 models have beside the float64.
inline float leaf_output(const TiledForest& forest, const Tree& tree, std::int32_t leaf) {
  return forest.model().score_type == ScalarType::Float64
             ? static_cast<float>(leaf_output<double>(tree, leaf))
             : leaf_output<float>(tree, leaf);
}

/// Numbers the leaf at `place` of the group's leaf numbers.
void set_number(BuiltGroup& built, const TiledForest& forest, std::size_t place, const Tree& tree,
                std::int32_t leaf);

inline Test test_of(const Tree& tree, std::int32_t split) {
  if (split == kNoNode) return {};
  const Node& node = tree.nodes[static_cast<std::size_t>(split)];
  return {static_cast<float>(node.threshold), node.feature | (node.missing_left ? kMissingLeft : 0u),
          node.kind == NodeKind::Category ? &tree.category_sets[node.payload] : nullptr};
}

/// The record of a tree, without its place.
inline TreeDesc record_of(const TiledForest& forest, std::uint32_t position, std::uint32_t depth) {
  TreeDesc desc{};
  desc.output = forest.model_tree(position).output;
  desc.depth = depth;
  desc.number = forest.order[position];
  return desc;
}

template <class T>
void append(std::vector<std::byte>& bytes, const std::vector<T>& records) {
  const auto more = std::as_bytes(std::span(records));
  bytes.insert(bytes.end(), more.begin(), more.end());
}

}  // namespace forestvm::scheduler
