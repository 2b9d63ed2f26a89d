// Model -> the order in which the program goes through its trees. Refuses by name what no walker can run yet.
#include <algorithm>
#include <numeric>

#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

Result<void> check_model(const Model& model) {
  if (model.num_features == 0) return refused("", "the model has no features");
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    const Tree& tree = model.trees[t];
    const auto wrong = [&](const std::string& what) {
      return refused("tree " + number(t) + ", node 0", what + " are not lowered yet");
    };
    if (tree.leaf_width != 1) return wrong("vector leaves");
    if (!tree.linear_leaves.empty()) return wrong("linear leaves");
  }
  return {};
}

}  // namespace

Result<void> order_trees(Lowering& lowering) {
  const Model& model = lowering.model;
  FVM_TRY(check_model(model));
  std::vector<std::uint32_t>& order = lowering.forest.order;
  order.resize(model.trees.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto& wish = lowering.loops.program.order;
  if (!wish || wish->value == "none") return {};
  std::vector<std::uint32_t> keys;
  for (const Tree& tree : model.trees)
    keys.push_back(wish->value == "class" ? tree.output : shape_of(tree).depth);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  return {};
}

}  // namespace forestvm::scheduler
