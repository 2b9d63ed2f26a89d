// See catboost_tree.hpp.
#include "frontend/catboost_tree.hpp"

namespace forestvm::frontend {
namespace {

/// Appends the leaves after the tree's splits, and adds their weights up.
void add_leaves(const CatboostLeaves& leaves, Tree& tree) {
  tree.first_leaf = static_cast<std::uint32_t>(tree.nodes.size());
  tree.leaf_width = leaves.width;
  const std::size_t count = leaves.values.size() / leaves.width;
  tree.nodes.resize(tree.nodes.size() + count);
  for (std::size_t i = 0; i < count; ++i) {
    Node& leaf = tree.nodes[tree.first_leaf + i];
    if (leaves.width == 1) leaf.value = leaves.values[i];
    if (leaves.width > 1) leaf.payload = static_cast<std::uint32_t>(i);
    if (!leaves.weights.empty()) leaf.cover = static_cast<float>(leaves.weights[i]);
  }
  if (leaves.width > 1) tree.leaf_vectors.assign(leaves.values.begin(), leaves.values.end());
  const auto cover = [&](std::int32_t child) { return tree.nodes[static_cast<std::size_t>(child)].cover; };
  for (std::size_t i = tree.first_leaf; i-- > 0;)
    tree.nodes[i].cover = cover(tree.nodes[i].left) + cover(tree.nodes[i].right);
}

Node split_node(std::uint32_t split, std::size_t left, std::size_t right) {
  Node node;
  node.kind = NodeKind::LessEqual;
  node.payload = split;
  node.left = static_cast<std::int32_t>(left);
  node.right = static_cast<std::int32_t>(right);
  return node;
}

}  // namespace

Tree oblivious_tree(std::span<const std::uint32_t> splits, const CatboostLeaves& leaves) {
  Tree tree;
  tree.nodes.reserve((std::size_t{2} << splits.size()) - 1);
  for (std::size_t level = 0; level < splits.size(); ++level) {
    // The nodes of a level are in the order of the bits that lead to them.
    const std::size_t nodes = std::size_t{1} << level, next = 2 * nodes - 1;
    for (std::size_t bits = 0; bits < nodes; ++bits)
      tree.nodes.push_back(split_node(splits[level], next + bits, next + bits + nodes));
  }
  add_leaves(leaves, tree);
  return tree;
}

Tree branching_tree(std::span<const CatboostBranch> branches, const CatboostLeaves& leaves) {
  Tree tree;
  tree.nodes.reserve(2 * branches.size() + 1);
  const auto index = [&](std::int32_t child) {
    return child >= 0 ? static_cast<std::size_t>(child)
                      : branches.size() + static_cast<std::size_t>(-1 - child);
  };
  for (const CatboostBranch& branch : branches)
    tree.nodes.push_back(split_node(branch.split, index(branch.left), index(branch.right)));
  add_leaves(leaves, tree);
  return tree;
}

}  // namespace forestvm::frontend
