// The order of nodes in sparse layouts.
#include "scheduler/layouts/sparse.hpp"

#include <deque>
#include <utility>

namespace forestvm::scheduler {

SparseOrder sparse_order(const Tree& tree, const TiledTree& tiled, bool by_probability) {
  SparseOrder order;
  std::deque<std::uint32_t> splits;  // slots of splits whose children have no slots yet
  const auto add_slot = [&](TileChild at) {
    order.slots.push_back(at);
    order.children.push_back(0);
  };
  const auto wait = [&](std::uint32_t slot) {
    if (!order.slots[slot].is_leaf()) splits.push_back(slot);
  };
  const auto cover = [&](std::uint32_t slot) { return cover_of(tree, tiled, order.slots[slot]); };
  add_slot(tiled.root);
  wait(0);
  while (!splits.empty()) {
    const std::uint32_t parent = by_probability ? splits.back() : splits.front();
    by_probability ? splits.pop_back() : splits.pop_front();
    auto first = static_cast<std::uint32_t>(order.slots.size()), second = first + 1;
    order.children[parent] = first;
    for (const TileChild child : children_of(tiled, order.slots[parent])) add_slot(child);
    // The split that is added last is the next: that makes the order depth-first.
    if (by_probability && cover(first) >= cover(second)) std::swap(first, second);
    wait(first);
    wait(second);
  }
  return order;
}

}  // namespace forestvm::scheduler
