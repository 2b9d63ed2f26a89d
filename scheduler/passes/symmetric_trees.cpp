// Makes the last split of CatBoost's symmetric trees, whose levels have one split each, their root. A leaf's number
// has a bit for each split, the first split's the lowest; CatBoost explains predictions as if the highest bit were
// tested first.
//
//   f0 ? (f1 ? a : c) : (f1 ? b : d)      ->      f1 ? (f0 ? a : b) : (f0 ? c : d)
#include <numeric>

#include "scheduler/normal_form.hpp"
#include "scheduler/passes/rooted_tree.hpp"

namespace forestvm::scheduler {
namespace {

/// The order of a split's children: the trainer's, or the other one, in which the normal form may have them.
enum class Children { AsTrained, Swapped, Neither };

Children children_of(const Node& node, std::size_t zero, std::size_t one) {
  const auto left = static_cast<std::size_t>(node.left), right = static_cast<std::size_t>(node.right);
  if (left == zero && right == one) return Children::AsTrained;
  return left == one && right == zero ? Children::Swapped : Children::Neither;
}

/// Returns the number of levels of a symmetric tree whose nodes follow one another level by level, and within a
/// level in the order of the bits that lead to them; 0 for other trees.
std::size_t symmetric_levels(const Tree& tree) {
  std::size_t levels = 0;
  while ((std::size_t{2} << levels) - 1 < tree.nodes.size()) ++levels;
  if ((std::size_t{2} << levels) - 1 != tree.nodes.size()) return 0;
  for (std::size_t level = 0; level < levels; ++level) {
    const std::size_t nodes = std::size_t{1} << level, next = 2 * nodes - 1;
    const Node& first = tree.nodes[nodes - 1];
    for (std::size_t bits = 0; bits < nodes; ++bits) {
      const Node& node = tree.nodes[nodes - 1 + bits];
      if (node.kind == NodeKind::Leaf || node.kind == NodeKind::Unused || !same_test(first, node)) return 0;
      const Children order = children_of(node, next + bits, next + bits + nodes);
      if (order == Children::Neither || order != children_of(first, next, next + nodes)) return 0;
    }
  }
  return levels;
}

}  // namespace

Tree rooted_for_contributions(const Model& model, const Tree& tree, std::vector<std::uint32_t>& sources) {
  sources.resize(tree.nodes.size());
  std::iota(sources.begin(), sources.end(), 0u);
  const std::size_t levels = model.trainer == "catboost" ? symmetric_levels(tree) : 0;
  if (levels < 2) return tree;
  Tree rooted = tree;
  const std::size_t leaves = std::size_t{1} << levels, first_leaf = leaves - 1;
  // Level `depth` of the new tree has the split of level `levels` - 1 - `depth`, and its nodes in the order of the bits
  // that are known there, the highest bits of the leaves' numbers.
  for (std::size_t depth = 0; depth < levels; ++depth) {
    const std::size_t level = levels - 1 - depth, count = std::size_t{1} << depth;
    const std::size_t source = (std::size_t{1} << level) - 1, next = 2 * count - 1;
    const bool swapped = children_of(tree.nodes[source], 2 * source + 1, 3 * source + 2) == Children::Swapped;
    for (std::size_t known = 0; known < count; ++known) {
      Node& node = rooted.nodes[count - 1 + known];
      node = tree.nodes[source];
      const auto zero = static_cast<std::int32_t>(next + 2 * known), one = zero + 1;
      node.left = swapped ? one : zero;
      node.right = swapped ? zero : one;
      sources[count - 1 + known] = static_cast<std::uint32_t>(source);
    }
  }
  const auto cover = [&](std::int32_t child) { return rooted.nodes[static_cast<std::size_t>(child)].cover; };
  for (std::size_t n = first_leaf; n-- > 0;)
    rooted.nodes[n].cover = cover(rooted.nodes[n].left) + cover(rooted.nodes[n].right);
  return rooted;
}

}  // namespace forestvm::scheduler
