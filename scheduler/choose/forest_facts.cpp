// See forest_facts.hpp.
#include "scheduler/choose/forest_facts.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/tables.hpp>

#include "scheduler/normal_form.hpp"
#include "scheduler/rank_table.hpp"

namespace forestvm::scheduler {
namespace {

/// Returns true if all nodes of a level make the same test, and all leaves are below the last level.
bool is_oblivious(const Tree& tree) {
  std::vector<std::size_t> level{0}, below;
  while (tree.nodes[level.front()].kind != NodeKind::Leaf) {
    below.clear();
    for (const std::size_t at : level) {
      const Node& node = tree.nodes[at];
      if (!same_test(node, tree.nodes[level.front()])) return false;
      below.push_back(static_cast<std::size_t>(node.left));
      below.push_back(static_cast<std::size_t>(node.right));
    }
    level.swap(below);
  }
  return std::all_of(level.begin(), level.end(),
                     [&](std::size_t at) { return tree.nodes[at].kind == NodeKind::Leaf; });
}

bool has_cover(const Tree& tree) { return tree.nodes.front().cover > 0; }

/// Returns true if the model says how many training rows came to the nodes, for every tree with a split.
bool says_covers(const Model& model) {
  return std::any_of(model.trees.begin(), model.trees.end(), has_cover) &&
         std::all_of(model.trees.begin(), model.trees.end(), [&](const Tree& tree) {
           return has_cover(tree) || tree.nodes.front().kind == NodeKind::Leaf;
         });
}

struct LeafDepths {
  std::uint64_t count = 0;
  double mean = 0;  ///< Mean depth of the leaves, weighted by covers if there are some.
  /// The largest sum, over the levels, of a level's nodes and its splits. If nodes lie level by level, all reach their
  /// children in this distance.
  std::uint64_t reach = 0;
};

LeafDepths leaves_of(const Tree& tree) {
  LeafDepths leaves;
  double depths = 0, weighted = 0, weight = 0;
  std::vector<std::uint64_t> reach;
  std::vector<std::pair<std::size_t, std::uint32_t>> open{{0, 0}};
  while (!open.empty()) {
    const auto [at, depth] = open.back();
    open.pop_back();
    const Node& node = tree.nodes[at];
    if (depth >= reach.size()) reach.resize(std::size_t{depth} + 1);
    reach[depth] += node.kind == NodeKind::Leaf ? 1u : 2u;
    if (node.kind == NodeKind::Leaf) {
      ++leaves.count;
      depths += depth;
      weighted += depth * static_cast<double>(node.cover);
      weight += static_cast<double>(node.cover);
    } else {
      open.emplace_back(static_cast<std::size_t>(node.left), depth + 1);
      open.emplace_back(static_cast<std::size_t>(node.right), depth + 1);
    }
  }
  leaves.reach = *std::max_element(reach.begin(), reach.end());
  leaves.mean = weight > 0 ? weighted / weight : depths / static_cast<double>(leaves.count);
  return leaves;
}

}  // namespace

ForestFacts facts_of(const Model& model) {
  ForestFacts facts;
  facts.forest = statistics(model);
  facts.trees = model.trees.size();
  facts.features = model.num_features;
  facts.outputs = model.num_outputs;
  facts.is_float64 = model.row_type == ScalarType::Float64;
  facts.has_made_columns = !model.lookups.empty() || !model.computed_columns.empty();
  facts.columns = most_columns(facts.forest);
  facts.knows_covers = says_covers(model);
  facts.oblivious = std::all_of(model.trees.begin(), model.trees.end(), is_oblivious);
  facts.has_vectors = std::any_of(model.trees.begin(), model.trees.end(), [](const Tree& tree) {
    return tree.leaf_width > 1 || !tree.linear_leaves.empty();
  });
  double steps = 0;
  std::uint64_t reach = 0;
  for (const Tree& tree : model.trees) {
    const LeafDepths leaves = leaves_of(tree);
    facts.most_leaves = std::max(facts.most_leaves, leaves.count);
    reach = std::max(reach, leaves.reach);
    steps += leaves.mean;
  }
  if (facts.trees != 0) facts.mean_steps = steps / static_cast<double>(facts.trees);
  facts.fits_tables = facts.most_leaves <= kMaxTableLeaves;
  // Leaves above the last level of tables stand before the nodes of that level.
  facts.suits_top_tables = !facts.fits_tables && reach + kMaxTableLeaves <= Sparse4View::kMaxDistance &&
                           facts.columns <= Sparse4View::kMaxColumns;
  return facts;
}

}  // namespace forestvm::scheduler
