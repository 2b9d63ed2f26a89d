// See forestvm/samples.hpp.
#include <forestvm/internal/formatted.hpp>
#include <forestvm/samples.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "frontend/split_tests.hpp"

namespace forestvm {
namespace {

Result<void> check_shapes(const Model& model, std::size_t values, std::size_t columns,
                          std::span<const double> targets) {
  const std::size_t count = columns == 0 ? 0 : values / columns;
  if (columns != model.num_features || count == 0 || count * columns != values)
    return refused("samples", "their shape is ({}, {}), but it must be (rows, {}) with a row or more", count,
                   columns, model.num_features);
  if (targets.size() != count) return refused("samples", "{} rows, but {} targets", count, targets.size());
  if (model.num_outputs != 1)
    return refused("samples", "quantiles are those of one target, but the model has {} outputs",
                   model.num_outputs);
  if (!model.averaged && model.trees.size() > 1)
    return refused(
        "samples",
        "quantiles are those of a single tree or of a forest that averages its trees, but this model of {} "
        "adds {} trees",
        model.trainer, model.trees.size());
  if (count > Samples::kMaxBytes / sizeof(std::uint32_t) / std::max<std::size_t>(1, model.trees.size()))
    return refused("samples", "{} rows in {} trees take more than {} bytes; give fewer rows", count,
                   model.trees.size(), Samples::kMaxBytes);
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(targets[i])) return refused("samples", "the target of row {} is not finite", i);
  return {};
}

/// Appends the leaf of each row of the current word to the leaves of a tree.
void append_leaves(const Tree& tree, const std::vector<std::uint32_t>& tests_of_nodes,
                   const frontend::SplitTests& tests, std::uint64_t present,
                   std::vector<std::uint32_t>& leaves) {
  const std::size_t first = leaves.size();
  leaves.resize(first + static_cast<std::size_t>(std::popcount(present)));
  struct Visit {
    std::uint32_t node;
    std::uint64_t rows;
  };
  std::vector<Visit> open{{0, present}};
  while (!open.empty()) {
    const Visit visit = open.back();
    open.pop_back();
    const Node& node = tree.nodes[visit.node];
    if (node.kind == NodeKind::Leaf) {
      for (std::uint64_t rows = visit.rows; rows != 0; rows &= rows - 1)
        leaves[first + static_cast<std::size_t>(std::countr_zero(rows))] = visit.node;
      continue;
    }
    const std::uint64_t left = tests.left(tests_of_nodes[visit.node]) & visit.rows;
    if (left != 0) open.push_back({static_cast<std::uint32_t>(node.left), left});
    if (left != visit.rows) open.push_back({static_cast<std::uint32_t>(node.right), visit.rows & ~left});
  }
}

}  // namespace

Result<Samples> Samples::make(const Model& model, std::span<const double> rows, std::size_t columns,
                              std::span<const double> targets, bool hashed_rows) {
  FVM_TRY(check_shapes(model, rows.size(), columns, targets));
  Samples samples;
  samples.targets_.assign(targets.begin(), targets.end());
  for (double& target : samples.targets_) target += 0.0;  // -0 and 0 are one target
  std::ranges::sort(samples.targets_);
  samples.targets_.erase(std::unique(samples.targets_.begin(), samples.targets_.end()),
                         samples.targets_.end());
  samples.targets_.shrink_to_fit();

  // number of the leaf of each row, by tree
  std::vector<std::vector<std::uint32_t>> leaves(model.trees.size());
  for (std::vector<std::uint32_t>& of_tree : leaves) of_tree.reserve(targets.size());
  frontend::SplitTests tests(model);
  FVM_TRY(tests.each_word(rows, hashed_rows, [&](std::uint64_t present) {
    for (std::size_t t = 0; t < leaves.size(); ++t)
      append_leaves(model.trees[t], tests.numbers()[t], tests, present, leaves[t]);
  }));

  std::vector<std::uint32_t> order(targets.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) { return targets[a] < targets[b]; });
  for (std::size_t t = 0; t < leaves.size(); ++t) {
    TreeSamples& of_tree = samples.trees_.emplace_back();
    of_tree.begins.assign(model.trees[t].nodes.size() + 1, 0);
    for (const std::uint32_t leaf : leaves[t]) ++of_tree.begins[leaf + 1];
    std::partial_sum(of_tree.begins.begin(), of_tree.begins.end(), of_tree.begins.begin());
    std::vector<std::uint32_t> ends(of_tree.begins.begin(), of_tree.begins.end() - 1);
    of_tree.targets.resize(targets.size());
    std::size_t target = 0;
    for (const std::uint32_t row : order) {
      while (samples.targets_[target] < targets[row]) ++target;
      of_tree.targets[ends[leaves[t][row]]++] = static_cast<std::uint32_t>(target);
    }
    leaves[t] = {};
  }
  return samples;
}

}  // namespace forestvm
