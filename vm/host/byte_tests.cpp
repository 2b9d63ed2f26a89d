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

/// A node in the first eight levels of a tree, or the node below them at which a walk through them ends.
struct Place {
  std::uint32_t node;  ///< The node's distance from the root.
  std::uint32_t slot;
  unsigned level;
};

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
  made->high_.resize(all / kFour);
  made->low_.resize(all * kSlots);
  for (High& tests : made->high_) tests.codes.fill(kNeverRight);
  for (Low& tests : made->low_) tests.codes.fill(kNeverRight);
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
  Low* const blocks = low_.data() + to * std::size_t{kSlots};
  std::array<Place, kLevels + 1> waiting;  // right children
  std::size_t count = 0;
  waiting[count++] = {0, 1, 0};
  while (count != 0) {
    Place at = waiting[--count];
    for (; at.level < kLevels && !Sparse4View::is_leaf(nodes, at.node); ++at.level, at.slot *= 2) {
      const unsigned level = at.level % kHalf;
      const std::uint32_t slot = at.slot % (1u << level) | 1u << level;
      const auto set = [&](auto& tests, std::uint32_t first) {
        tests.columns[first + slot] = static_cast<std::uint8_t>(Sparse4View::column(nodes, at.node));
        tests.codes[first + slot] = Sparse4View::code(nodes, at.node);
      };
      if (at.level < kHalf)
        set(high_[to / kFour], to % kFour * kSlots);
      else
        set(blocks[(at.slot >> level) % kSlots], 0);
      waiting[count++] = {Sparse4View::child(nodes, at.node, 1), 2 * at.slot + 1, at.level + 1};
      at.node = Sparse4View::child(nodes, at.node, 0);
    }
    // Rows go left in the levels below a leaf.
    const std::uint32_t slot = (at.slot << (kLevels - at.level)) % (1u << kLevels),
                        end = slot >> spare_levels_;
    const std::size_t first = std::size_t{to} << (kLevels - spare_levels_);
    const std::uint32_t leaf = nodes.nodes[at.node].leaf();
    if (!has_leaves_) {
      ends_[first + end] = static_cast<std::uint16_t>(walks_end_ ? leaf - desc.first_leaf : at.node);
    } else if (has_leaves_in_blocks()) {
      const std::uint32_t place = leaf_place(end % kLeavesOfBlock);
      std::memcpy(reinterpret_cast<float*>(blocks + end / kLeavesOfBlock) + place, group.leaves + leaf,
                  sizeof(float));
    } else {
      leaves_[first + end] = group.leaves[leaf];
    }
  }
}

}  // namespace forestvm::host
