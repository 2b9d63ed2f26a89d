// See walkers/byte_tests.hpp.
#include "vm/host/walkers/byte_tests.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

namespace forestvm::host {
namespace {

/// The most bytes of tests and leaves. More would leave the second-level cache, from which they are read.
constexpr std::size_t kMostBytes = std::size_t{2} << 20;

}  // namespace

std::unique_ptr<const ByteTests> ByteTests::make(const GroupData& group, std::uint32_t tree_count,
                                                 bool wide) {
  std::uint32_t depth = 0;
  for (const TreeDesc& tree : std::span(group.trees, tree_count)) {
    constexpr std::uint32_t kMostEnds = std::numeric_limits<std::uint16_t>::max();
    if (tree.node_count > kMostEnds || tree.leaf_count > kMostEnds) return nullptr;
    depth = std::max(depth, tree.depth);
  }
  std::unique_ptr<ByteTests> made(new ByteTests);  // std::make_unique cannot call the private constructor
  made->walks_end_ = depth <= kLevels;
  made->has_leaves_ = made->walks_end_ && !wide;
  if (made->has_leaves_) made->spare_levels_ = std::min(kLevels - depth, kMostSpareLevels);
  const std::size_t all = (std::size_t{tree_count} + kFour - 1) / kFour * kFour + kTogether;
  const std::size_t ends = made->has_leaves_in_blocks() ? 0 : all << (kLevels - made->spare_levels_);
  const std::size_t bytes =
      all * kSlots * sizeof(Low) + ends * (made->has_leaves_ ? sizeof(float) : sizeof(std::uint16_t));
  if (tree_count == 0 || bytes > kMostBytes) return nullptr;
  High no_high{};
  no_high.codes.fill(kNeverRight);
  Low no_low{};
  no_low.codes.fill(kNeverRight);
  made->high_.assign(all / kFour, no_high);
  made->low_.assign(all * kSlots, no_low);
  if (made->has_leaves_)
    made->leaves_.resize(ends);
  else
    made->ends_.resize(ends + 1);  // gathers read a word for each
  made->begins_.resize(all);
  for (std::uint32_t to = 0; to < all; ++to) made->add(group, std::min(to, tree_count - 1), to);
  return made;
}

/// Sets the tests and ends of the tree `to` to those of a tree of the group.
void ByteTests::add(const GroupData& group, std::uint32_t tree, std::uint32_t to) {
  const Sparse4View::Tree nodes = Sparse4View::tree(group, tree);
  const TreeDesc& desc = group.trees[tree];
  begins_[to] = walks_end_ ? desc.first_leaf : desc.first_node;
  High& high = high_[to / kFour];
  Low* const blocks = low_.data() + to * std::size_t{kSlots};
  const unsigned levels = kLevels - spare_levels_;
  std::array<std::uint32_t, std::size_t{2} << kLevels> places;  // of the node or the leaf above it, by slot
  places[1] = 0;
  for (unsigned level = 0; level < levels; ++level) {
    const std::uint32_t first = 1u << level;
    for (std::uint32_t slot = first; slot < 2 * first; ++slot) {
      const std::uint32_t at = places[slot];
      std::uint32_t* const children = places.data() + std::size_t{2} * slot;
      children[0] = children[1] = at;
      if (Sparse4View::is_leaf(nodes, at)) continue;
      for (unsigned branch = 0; branch < 2; ++branch)
        children[branch] = Sparse4View::child(nodes, at, branch);
      const auto set = [&](auto& tests, std::uint32_t test) {
        tests.columns[test] = static_cast<std::uint8_t>(Sparse4View::column(nodes, at));
        tests.codes[test] = Sparse4View::code(nodes, at);
      };
      const unsigned low_level = level % kHalf;
      if (level < kHalf)
        set(high, to % kFour * kSlots + slot);
      else
        set(blocks[(slot >> low_level) % kSlots], slot % (1u << low_level) | 1u << low_level);
    }
  }
  for (std::uint32_t end = 0; end < 1u << levels; ++end) {
    const std::uint32_t at = places[(std::size_t{1} << levels) + end], leaf = nodes.nodes[at].leaf();
    const std::size_t index = (std::size_t{to} << levels) + end;
    if (!has_leaves_) {
      ends_[index] = static_cast<std::uint16_t>(walks_end_ ? leaf - desc.first_leaf : at);
    } else if (has_leaves_in_blocks()) {
      auto* const block = reinterpret_cast<float*>(blocks + end / kLeavesOfBlock);
      std::memcpy(block + leaf_place(end % kLeavesOfBlock), group.leaves + leaf, sizeof(float));
    } else {
      leaves_[index] = group.leaves[leaf];
    }
  }
}

}  // namespace forestvm::host
