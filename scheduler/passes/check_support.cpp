// Refuses by name, with tree and node, what no pass can lower yet: the passes after this one need not ask.
#include "scheduler/compilation.hpp"

namespace forestvm::scheduler {

Result<void> check_support(Compilation& compilation) {
  const Model& model = compilation.model;
  if (model.trees.size() >= UINT32_MAX) return refused("", "too many trees");
  if (model.num_features == 0) return refused("", "the model has no features");
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    const Tree& tree = model.trees[t];
    const auto wrong = [&](const std::string& what) {
      return refused("tree " + std::to_string(t) + ", node 0", what + " are not lowered yet");
    };
    if (!tree.linear_leaves.empty()) return wrong("linear leaves");
  }
  return {};
}

}  // namespace forestvm::scheduler
