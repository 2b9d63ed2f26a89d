// Builds the sparse layout for rank-coded rows, and says which trees it can hold.
#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/internal/formatted.hpp>

#include <algorithm>
#include <array>

#include <boost/container/static_vector.hpp>

#include "scheduler/layouts/sparse.hpp"

namespace forestvm::scheduler {
namespace {

constexpr std::size_t kLineNodes = 64 / sizeof(Sparse4View::Node);

/// The order of a tree's nodes in cache lines. One object serves tree after tree, so that its memory is allocated once.
class LineOrder {
 public:
  /// Fills cache lines, each with a node or two siblings and as many of the nodes below them as fit, level by
  /// level or the likeliest first. A walk through trees that are not in the cache then loads few lines.
  void order(const GroupTree& at, bool by_probability) {
    slots_.clear();
    children_.clear();
    waiting_.clear();
    const std::array root{at.tiled.root};
    add_block(at, root, by_probability);
    for (std::size_t next = 0; next < waiting_.size(); ++next) {  // NOLINT(modernize-loop-convert): it grows
      const auto [split, slot] = waiting_[next];
      const std::uint32_t first = add_block(at, children_of(at.tiled, split), by_probability);
      children_[slot] = first;
    }
    slots_.resize(whole_lines(slots_.size()), TileChild::none());
  }

  /// The node in each slot; none is padding.
  const std::vector<TileChild>& slots() const { return slots_; }
  /// The slot of each split's left child.
  const std::vector<std::uint32_t>& children() const { return children_; }

 private:
  /// A split without room in its line for its children, which begin another block.
  struct Waiting {
    TileChild split;
    std::uint32_t slot;
  };

  static std::size_t whole_lines(std::size_t slots) {
    return (slots + kLineNodes - 1) / kLineNodes * kLineNodes;
  }

  /// Adds a block of nodes, which lie in one line; returns the slot of its first node.
  std::uint32_t add_block(const GroupTree& at, std::span<const TileChild> top, bool by_probability) {
    boost::container::static_vector<TileChild, kLineNodes> nodes(top.begin(), top.end());
    std::array<std::uint32_t, kLineNodes> children{};
    std::array<float, kLineNodes> covers{};
    boost::container::static_vector<std::uint32_t, kLineNodes> splits;  // their children have no slots yet
    const auto wait = [&](std::uint32_t from) {
      for (std::uint32_t i = from; i < nodes.size(); ++i) {
        if (nodes[i].is_leaf()) continue;
        splits.push_back(i);
        if (by_probability) covers[i] = cover_of(at.tree, at.tiled, nodes[i]);
      }
    };
    const auto less_likely = [&](std::uint32_t a, std::uint32_t b) { return covers[a] < covers[b]; };
    wait(0);
    // Pairs of children join the block as long as they fit; each pair that does not fit begins a block.
    while (!splits.empty() && nodes.size() + 2 <= kLineNodes) {
      const auto next =
          by_probability ? std::max_element(splits.begin(), splits.end(), less_likely) : splits.begin();
      const std::uint32_t parent = *next;
      splits.erase(next);
      children[parent] = static_cast<std::uint32_t>(nodes.size());
      const auto pair = children_of(at.tiled, nodes[parent]);
      nodes.insert(nodes.end(), pair.begin(), pair.end());
      wait(children[parent]);
    }
    if (slots_.size() % kLineNodes + nodes.size() > kLineNodes)
      slots_.resize(whole_lines(slots_.size()), TileChild::none());
    const auto first = static_cast<std::uint32_t>(slots_.size());
    slots_.insert(slots_.end(), nodes.begin(), nodes.end());
    children_.resize(first);
    for (std::size_t i = 0; i < nodes.size(); ++i) children_.push_back(first + children[i]);
    for (const std::uint32_t split : splits) waiting_.push_back({nodes[split], first + split});
    return first;
  }

  std::vector<TileChild> slots_;
  std::vector<std::uint32_t> children_;
  std::vector<Waiting> waiting_;
};

}  // namespace

Result<LayoutSize> size_Sparse4(const TiledForest& forest, const TreeGroup& group) {
  LayoutSize size;
  std::uint64_t leaves = 0;
  std::string problem;
  LineOrder order;
  for_trees(forest, group, [&](const GroupTree& at) {
    leaves += at.tiled.leaves;
    if (!problem.empty()) return;
    std::uint64_t slots = at.tiled.size();
    if (slots <= Sparse4View::kMaxDistance) {  // with padding, it may have too many
      order.order(at, group.tiling.by_probability);
      slots = order.slots().size();
    }
    if (slots > Sparse4View::kMaxDistance)
      problem = formatted("its nodes reach children at most {} nodes away, tree {} takes {}",
                          Sparse4View::kMaxDistance, at.position, slots);
    size.slots += slots + at.tiled.leaves;
    size.bytes += slots * sizeof(Sparse4View::Node) + at.tiled.leaves * sizeof(float);
  });
  if (!problem.empty()) return refused(problem);
  if (leaves > Sparse4View::kMaxLeaves)
    return refused(formatted("a group can have {} leaves, this one has {}", Sparse4View::kMaxLeaves, leaves));
  return size;
}

Result<BuiltGroup> build_Sparse4(const TiledForest& forest, const TreeGroup& group, const RankTable& ranks) {
  if (const std::size_t columns = ranks.columns().size(); columns > Sparse4View::kMaxColumns)
    return refused(formatted("its nodes have room for {} columns of codes, the model's thresholds need {}",
                             Sparse4View::kMaxColumns, columns));
  GroupBuilder<Sparse4View::Node> built(forest);
  LineOrder order;
  built.add_trees(group, [&](const GroupTree& at, std::uint32_t first_leaf) {
    order.order(at, group.tiling.by_probability);
    for (std::uint32_t slot = 0; slot < order.slots().size(); ++slot) {
      const TileChild node = order.slots()[slot];
      if (node.is_none()) {
        built.nodes.push_back(Sparse4View::leaf_node(first_leaf));
      } else if (node.is_leaf()) {
        built.nodes.push_back(Sparse4View::leaf_node(static_cast<std::uint32_t>(built.leaves.size())));
        built.add_leaf(at, node);
      } else {
        const CodedTest coded = ranks.find(at.test(node));
        built.nodes.push_back(
            Sparse4View::split_node(coded.column, coded.code, order.children()[slot] - slot));
      }
    }
  });
  return built.finish();
}

}  // namespace forestvm::scheduler
