// The roots of a group's trees, one behind the other, for walks whose lanes are trees: they load the roots of their
// lanes instead of gathering them from the trees' records and nodes, which takes as long as two steps of the walk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <forestvm/core/forest_data.hpp>

namespace forestvm::host {

class RootNodes {
 public:
  /// The most lanes of a vector. A vector whose last lanes have no tree reads up to this number of leaves behind the
  /// last root.
  static constexpr std::uint32_t kMaxLanes = 16;

  RootNodes() = default;

  /// Copies the roots of the first `tree_count` trees of a group whose layout is View.
  template <class View>
  static RootNodes of(const GroupData& group, std::uint32_t tree_count) {
    using Node = typename View::Node;
    RootNodes roots;
    roots.positions_.resize(tree_count + kMaxLanes);
    roots.nodes_.resize((tree_count + kMaxLanes) * sizeof(Node));
    Node* const nodes = reinterpret_cast<Node*>(roots.nodes_.data());
    for (std::uint32_t t = 0; t < tree_count; ++t) {
      roots.positions_[t] = group.trees[t].first_node;
      nodes[t] = reinterpret_cast<const Node*>(group.nodes)[group.trees[t].first_node];
    }
    // Walks stay at a leaf: these stay at the group's first node.
    for (std::uint32_t i = 0; i < kMaxLanes; ++i) nodes[tree_count + i].word = View::kLeafWord;
    return roots;
  }

  /// Returns the index of each root, counted from the group's first node.
  const std::uint32_t* positions() const { return positions_.data(); }

  template <class Node>
  const Node* nodes() const {
    return reinterpret_cast<const Node*>(nodes_.data());
  }

 private:
  std::vector<std::uint32_t> positions_{};
  std::vector<std::byte> nodes_{};
};

}  // namespace forestvm::host
