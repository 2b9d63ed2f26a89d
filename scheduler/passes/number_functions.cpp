// Linear leaves -> numbers of functions in one table.
//
//   leaf 0.5 + 2 * f1 or 0.25, leaf 3     ->     leaf 0, leaf 1; table [0.5 + 2 * f1 or 0.25] [3]
//
// Walks then keep every tree's number, and sum_trees adds what the functions give, in the model's order.
#include <string>

#include "scheduler/compilation.hpp"

namespace forestvm::scheduler {
namespace {

class FunctionTable {
 public:
  explicit FunctionTable(Compilation& compilation) : to_(compilation) {}

  /// Returns the number of a leaf's function. A leaf without a function gets a constant one.
  Result<double> number(const Tree& tree, const Node& node) {
    static const LinearLeaf kNone;
    const LinearLeaf& leaf = tree.linear_leaves.empty() ? kNone : tree.linear_leaves[node.payload];
    const double constant = tree.linear_leaves.empty() ? node.value : leaf.constant;
    const std::size_t number = to_.leaf_functions.size();
    if (leaf.features.size() > UINT32_MAX - to_.leaf_terms.size())
      return refused("model", "linear leaves of 2^32 coefficients and more");
    to_.leaf_functions.push_back({constant, node.value, static_cast<std::uint32_t>(to_.leaf_terms.size()),
                                  static_cast<std::uint32_t>(leaf.features.size())});
    for (std::size_t i = 0; i < leaf.features.size(); ++i)
      to_.leaf_terms.push_back({leaf.coefficients[i], leaf.features[i], 0});
    return static_cast<double>(number);
  }

 private:
  Compilation& to_;
};

}  // namespace

Result<void> number_functions(Compilation& compilation) {
  if (!has_linear_leaves(compilation.model)) return {};
  FVM_CHECK(compilation.rewritable != nullptr);
  for (Lowering& plan : compilation.plans) plan.numbered = true;
  FunctionTable table(compilation);
  for (Tree& tree : compilation.rewritable->trees) {
    for (Node& node : tree.nodes)
      if (node.kind == NodeKind::Leaf) {
        FVM_ASSIGN(node.value, table.number(tree, node));
      }
    tree.linear_leaves = {};
  }
  return {};
}

}  // namespace forestvm::scheduler
