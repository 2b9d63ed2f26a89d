// Model -> the order in which the program goes through its trees.
#include <algorithm>
#include <numeric>

#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
Result<void> order_trees(Lowering& lowering) {
  const Model& model = lowering.model;
  std::vector<std::uint32_t>& order = lowering.forest.order;
  order.resize(model.trees.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto& requested = lowering.loops.program.order;
  if (!requested || requested->value == "none") return {};
  std::vector<std::uint32_t> keys;
  for (const Tree& tree : model.trees)
    keys.push_back(requested->value == "class" ? tree.output : shape_of(tree).depth);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  return {};
}

}  // namespace forestvm::scheduler
