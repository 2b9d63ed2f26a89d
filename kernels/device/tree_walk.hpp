// The steps of a walk, as kernels make them: through a view, or where that takes more instructions a step, by
// the layout's own arithmetic. A TreeWalk is made once for each tree; each walk through it has a Position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <forestvm/core/layouts.hpp>

#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// The memory in which nodes lie.
enum class Space { Global, Shared };

/// The position of a walk in shared memory: a node, and its address.
template <class Node>
struct NodeAt {
  Node node;
  std::uint32_t address;
};

template <class View, Space space>
class TreeWalk {
 public:
  using Position = std::uint32_t;

  FVM_DEVICE void open(const GroupData& group, std::uint32_t tree) { tree_ = View::tree(group, tree); }
  FVM_DEVICE Position root() const { return 0; }
  template <class Row>
  FVM_DEVICE void step(Position& at, const Row& row) const {
    at = View::template next<ScalarCompare>(tree_, at, row);
  }
  FVM_DEVICE bool is_leaf(Position at) const { return View::is_leaf(tree_, at); }
  FVM_DEVICE float value(Position at) const { return View::value(tree_, at); }

 private:
  typename View::Tree tree_;
};

/// Walks level-order trees, where the children of node i are 2i + 1 and 2i + 2. A position counts slots from
/// the root, and nodes of a tree are `stride` slots apart: the children are at 2 * position + stride and
/// 2 * position + 2 * stride. Where trees are not interleaved, the stride is 1.
template <class Placing>
class TreeWalk<LevelOrderView<Placing>, Space::Global> {
 public:
  using View = LevelOrderView<Placing>;
  using Position = std::uint32_t;

  FVM_DEVICE void open(const GroupData& group, std::uint32_t tree) {
    const auto nodes = View::tree(group, tree);
    root_ = Device::in_global(Device::kept(nodes.nodes));
    stride_ = View::kInterleaved ? nodes.stride : 1;
  }
  FVM_DEVICE Position root() const { return 0; }
  template <class Row>
  FVM_DEVICE void step(Position& at, const Row& row) const {
    const Node node = Device::load_global(root_ + at);
    at = Device::below(at, stride_, stride_, row[node.feature & kFeatureMask], node.value, node.feature);
  }
  FVM_DEVICE bool is_leaf(Position at) const { return (root_[at].feature & kLeaf) != 0; }
  FVM_DEVICE float value(Position at) const { return root_[at].value; }

 private:
  using Node = typename View::Node;

  const Node* root_;
  std::uint32_t stride_;
};

/// Walks level-order trees in shared memory. A position is a node and its address: address = root + position, so
/// that a child's address is 2 * address + stride - root or 2 * address + 2 * stride - root.
template <class Placing>
class TreeWalk<LevelOrderView<Placing>, Space::Shared> {
 public:
  using View = LevelOrderView<Placing>;
  using Node = typename View::Node;
  using Position = NodeAt<Node>;

  FVM_DEVICE void open(const GroupData& group, std::uint32_t tree) {
    const auto nodes = View::tree(group, tree);
    root_ = Device::shared_address(nodes.nodes);
    pitch_ = (View::kInterleaved ? nodes.stride : 1) * std::uint32_t{sizeof(Node)};
    left_ = pitch_ - root_;
  }
  FVM_DEVICE Position root() const { return {Device::load_shared<Node>(root_), root_}; }
  template <class Row>
  FVM_DEVICE void step(Position& at, const Row& row) const {
    const Node& node = at.node;
    at.address =
        Device::below(at.address, left_, pitch_, row[node.feature & kFeatureMask], node.value, node.feature);
    at.node = Device::load_shared<Node>(at.address);
  }
  FVM_DEVICE bool is_leaf(const Position& at) const { return (at.node.feature & kLeaf) != 0; }
  FVM_DEVICE float value(const Position& at) const { return at.node.value; }

 private:
  std::uint32_t root_, left_, pitch_;
};

/// Returns a row's code of a column, shifted to the bits of a word where a node of Array4 has its code.
template <class Codes>
FVM_DEVICE std::uint32_t code_word(const Codes& codes, std::uint32_t column) {
  return std::uint32_t{code_of(codes, column)} << Array4View::kCodeShift;
}

/// Walks level-order trees for rank codes. One compare of words is the test, because the column lies in the bits
/// below the code. A position is a node's number in the group, or its address in shared memory; the root's position
/// is subtracted when a position is doubled. A step has parts, which walks in lockstep take one after the other.
template <>
class TreeWalk<Array4View, Space::Global> {
 public:
  using Node = Array4View::Node;
  using Position = std::uint32_t;

  FVM_DEVICE void open(const GroupData& group, std::uint32_t tree) {
    nodes_ = Device::in_global(reinterpret_cast<const Node*>(group.nodes));
    desc_ = group.trees + tree;
    root_ = desc_->first_node;
    left_ = Device::kept(1 - root_);
  }
  FVM_DEVICE Position root() const { return root_; }
  FVM_DEVICE Node node(Position at) const { return Device::load_global(nodes_ + at); }
  FVM_DEVICE void move(Position& at, const Node& node, std::uint32_t code) const {
    at = Device::below(at, left_, 1, code, node.word);
  }
  template <class Codes>
  FVM_DEVICE void step(Position& at, const Codes& codes) const {
    const Node loaded = node(at);
    move(at, loaded, code_word(codes, loaded.column()));
  }
  FVM_DEVICE bool is_leaf(Position at) const { return at - (1 - left_) >= desc_->node_count / 2; }
  FVM_DEVICE float value(Position at) const { return __builtin_bit_cast(float, nodes_[at].word); }

 private:
  const Node* nodes_;
  /// Its node_count says where leaves begin. Few walks ask, and the number itself would take one more register.
  const TreeDesc* desc_;
  std::uint32_t root_, left_;
};

template <>
class TreeWalk<Array4View, Space::Shared> {
 public:
  using Node = Array4View::Node;
  using Position = NodeAt<Node>;

  FVM_DEVICE void open(const GroupData& group, std::uint32_t tree) {
    const auto nodes = Array4View::tree(group, tree);
    left_ = kBytes - Device::shared_address(nodes.nodes);
    desc_ = group.trees + tree;
  }
  FVM_DEVICE Position root() const { return {Device::load_shared<Node>(kBytes - left_), kBytes - left_}; }
  FVM_DEVICE Node node(const Position& at) const { return at.node; }
  FVM_DEVICE void move(Position& at, const Node& node, std::uint32_t code) const {
    at.address = Device::below(at.address, left_, kBytes, code, node.word);
    at.node = Device::load_shared<Node>(at.address);
  }
  template <class Codes>
  FVM_DEVICE void step(Position& at, const Codes& codes) const {
    move(at, at.node, code_word(codes, at.node.column()));
  }
  FVM_DEVICE bool is_leaf(const Position& at) const {
    return at.address - (kBytes - left_) >= desc_->node_count / 2 * kBytes;
  }
  FVM_DEVICE float value(const Position& at) const { return __builtin_bit_cast(float, at.node.word); }

 private:
  static constexpr std::uint32_t kBytes = sizeof(Node);

  std::uint32_t left_;
  const TreeDesc* desc_;
};

/// Walks sparse8 trees. Only a split has a distance to its children: at a leaf it is 0, and the walk stays.
template <>
class TreeWalk<Sparse8View, Space::Global> {
 public:
  using Position = std::uint32_t;

  FVM_DEVICE void open(const GroupData& group, std::uint32_t tree) {
    nodes_ = Device::in_global(reinterpret_cast<const Node*>(group.nodes));
    root_ = group.trees[tree].first_node;
  }
  FVM_DEVICE Position root() const { return root_; }
  template <class Row>
  FVM_DEVICE void step(Position& at, const Row& row) const {
    const Node node = Device::load_global(nodes_ + at);
    const float x = row[Sparse8View::feature_word(node.word) & kFeatureMask];
    at = Device::child<Sparse8View::kDistanceMask, 1>(at, x, node.value, node.word);
  }
  FVM_DEVICE bool is_leaf(Position at) const { return (Device::load_global(nodes_ + at).word & kLeaf) != 0; }
  FVM_DEVICE float value(Position at) const { return Device::load_global(nodes_ + at).value; }

 private:
  using Node = Sparse8View::Node;

  const Node* nodes_;
  std::uint32_t root_;
};

/// Walks sparse8 trees in shared memory. A position is a node and its address, so that a test for leaves loads
/// nothing.
template <>
class TreeWalk<Sparse8View, Space::Shared> {
 public:
  using Node = Sparse8View::Node;
  using Position = NodeAt<Node>;

  FVM_DEVICE void open(const GroupData& group, std::uint32_t tree) {
    root_ = Device::shared_address(Sparse8View::tree(group, tree));
  }
  FVM_DEVICE Position root() const { return {Device::load_shared<Node>(root_), root_}; }
  template <class Row>
  FVM_DEVICE void step(Position& at, const Row& row) const {
    const Node& node = at.node;
    const float x = row[Sparse8View::feature_word(node.word) & kFeatureMask];
    at.address =
        Device::child<Sparse8View::kDistanceMask, sizeof(Node)>(at.address, x, node.value, node.word);
    at.node = Device::load_shared<Node>(at.address);
  }
  FVM_DEVICE bool is_leaf(const Position& at) const { return (at.node.word & kLeaf) != 0; }
  FVM_DEVICE float value(const Position& at) const { return at.node.value; }

 private:
  std::uint32_t root_;
};

/// Returns the number, counted from the root, of the child to which a row goes; a leaf is its own child.
FVM_DEVICE std::uint32_t child_of(const Sparse16View::Node& node, float x) {
  return Device::branch(x, node.value, node.feature, node.left, node.right);
}
FVM_DEVICE std::uint32_t child_of(const Sparse12View::Node& node, float x) {
  return Device::sibling(node.left, x, node.value, node.feature);
}

template <class View>
concept Linked = std::is_same_v<View, Sparse16View> || std::is_same_v<View, Sparse12View>;

/// Walks trees whose nodes hold the numbers of their children.
template <Linked View>
class TreeWalk<View, Space::Global> {
 public:
  using Position = std::uint32_t;

  FVM_DEVICE void open(const GroupData& group, std::uint32_t tree) {
    root_ = Device::in_global(Device::kept(View::tree(group, tree)));
  }
  FVM_DEVICE Position root() const { return 0; }
  template <class Row>
  FVM_DEVICE void step(Position& at, const Row& row) const {
    const auto node = Device::load_global(root_ + at);
    at = child_of(node, row[node.feature & kFeatureMask]);
  }
  FVM_DEVICE bool is_leaf(Position at) const { return (root_[at].feature & kLeaf) != 0; }
  /// Calls kept() because compilers would otherwise hold each position in 64 bits as well.
  FVM_DEVICE float value(Position at) const { return root_[Device::kept(at)].value; }

 private:
  const typename View::Node* root_;
};

/// Walks trees whose nodes hold the numbers of their children, in shared memory. A position is a node's address.
template <Linked View>
class TreeWalk<View, Space::Shared> {
 public:
  using Position = std::uint32_t;

  FVM_DEVICE void open(const GroupData& group, std::uint32_t tree) {
    root_ = Device::shared_address(View::tree(group, tree));
  }
  FVM_DEVICE Position root() const { return root_; }
  template <class Row>
  FVM_DEVICE void step(Position& at, const Row& row) const {
    const Node node = Device::load_shared<Node>(at);
    at = root_ + child_of(node, row[node.feature & kFeatureMask]) * std::uint32_t{sizeof(Node)};
  }
  FVM_DEVICE bool is_leaf(Position at) const {
    return (Device::load_shared<std::uint32_t>(at + offsetof(Node, feature)) & kLeaf) != 0;
  }
  FVM_DEVICE float value(Position at) const { return Device::load_shared<float>(at + offsetof(Node, value)); }

 private:
  using Node = typename View::Node;

  std::uint32_t root_;
};

}  // namespace forestvm::kernels
