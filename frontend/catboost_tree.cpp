#include "catboost_tree.hpp"

namespace forestvm::frontend {
namespace {

/// Appends the leaves after the tree's splits.
void add_leaves(std::span<const double> values, std::uint32_t width, Tree& tree) {
  tree.first_leaf = static_cast<std::uint32_t>(tree.nodes.size());
  tree.leaf_width = width;
  const std::size_t leaves = values.size() / width;
  tree.nodes.resize(tree.nodes.size() + leaves);
  for (std::size_t i = 0; i < leaves; ++i) {
    Node& leaf = tree.nodes[tree.first_leaf + i];
    if (width == 1) leaf.value = values[i];
    if (width > 1) leaf.payload = static_cast<std::uint32_t>(i);
  }
  if (width > 1) tree.leaf_vectors.assign(values.begin(), values.end());
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

Tree oblivious_tree(std::span<const std::uint32_t> splits, std::span<const double> values,
                    std::uint32_t width) {
  Tree tree;
  tree.nodes.reserve((std::size_t{2} << splits.size()) - 1);
  for (std::size_t level = 0; level < splits.size(); ++level) {
    // The nodes of a level are in the order of the bits that lead to them.
    const std::size_t nodes = std::size_t{1} << level, next = 2 * nodes - 1;
    for (std::size_t bits = 0; bits < nodes; ++bits)
      tree.nodes.push_back(split_node(splits[level], next + bits, next + bits + nodes));
  }
  add_leaves(values, width, tree);
  return tree;
}

Tree branching_tree(std::span<const CatboostBranch> branches, std::span<const double> values,
                    std::uint32_t width) {
  Tree tree;
  tree.nodes.reserve(2 * branches.size() + 1);
  const auto index = [&](std::int32_t child) {
    return child >= 0 ? static_cast<std::size_t>(child)
                      : branches.size() + static_cast<std::size_t>(-1 - child);
  };
  for (const CatboostBranch& branch : branches)
    tree.nodes.push_back(split_node(branch.split, index(branch.left), index(branch.right)));
  add_leaves(values, width, tree);
  return tree;
}

}  // namespace forestvm::frontend
