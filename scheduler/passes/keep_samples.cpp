// Trees and samples -> the targets that each leaf keeps, by the trainer's numbers of leaves.
#include <span>
#include <vector>

#include <forestvm/samples.hpp>

#include "scheduler/compilation.hpp"

namespace forestvm::scheduler {

Result<void> keep_samples(Compilation& compilation) {
  const Samples* const samples = compilation.options.samples.get();
  if (samples == nullptr) return {};
  const Model& model = compilation.model;
  if (!samples->fits(model)) return usage("the samples were made for another model");
  SampledForest& to = compilation.sampled;
  to.leaves.push_back(0);
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    const Tree& tree = model.trees[t];
    std::vector<std::span<const std::uint32_t>> by_number;
    for (std::size_t n = 0; n < tree.nodes.size(); ++n) {
      if (tree.nodes[n].kind != NodeKind::Leaf) continue;
      const auto leaf = static_cast<std::size_t>(leaf_number(tree, n));
      if (leaf >= by_number.size()) by_number.resize(leaf + 1);
      by_number[leaf] = samples->of_leaf(t, n);
    }
    to.trees.push_back(
        {static_cast<std::uint32_t>(to.leaves.size() - 1), static_cast<std::uint32_t>(by_number.size())});
    for (const std::span<const std::uint32_t> targets : by_number) {
      to.sample_targets.insert(to.sample_targets.end(), targets.begin(), targets.end());
      to.leaves.push_back(static_cast<std::uint32_t>(to.sample_targets.size()));
    }
  }
  to.targets.assign(samples->targets().begin(), samples->targets().end());
  return {};
}

}  // namespace forestvm::scheduler
