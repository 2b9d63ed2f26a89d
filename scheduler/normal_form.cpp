// See normal_form.hpp. A split is put down as the least float32 that goes right: its bound.
#include "scheduler/normal_form.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace forestvm::scheduler {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr auto kTiniest = static_cast<float>(kTiny);  ///< the largest of the tiny numbers
static_assert(static_cast<double>(kTiniest) == kTiny);

float next_above(float x) { return std::nextafter(x, kInfinity); }

/// The least float32 that is not below `x`.
float round_up(double x) {
  // The cast of what lies beyond float32's range is not defined.
  if (x > static_cast<double>(std::numeric_limits<float>::max())) return kInfinity;
  if (x < static_cast<double>(std::numeric_limits<float>::lowest()))
    return std::isinf(x) ? -kInfinity : std::numeric_limits<float>::lowest();
  const auto nearest = static_cast<float>(x);
  return static_cast<double>(nearest) < x ? next_above(nearest) : nearest;
}

/// Which numbers go right: those from `least` on; none if it is not there.
struct Bound {
  std::optional<float> least;
};

/// Of the comparison alone.
Bound bound_of(const Node& node) {
  const float up = round_up(node.threshold);
  const bool equal_goes_left = node.kind == NodeKind::LessEqual && static_cast<double>(up) == node.threshold;
  if (!equal_goes_left) return {up};
  if (up == kInfinity) return {};
  return {next_above(up)};
}

/// Sends all tiny numbers to one side; false where that leaves no bound.
bool send_tiny(Bound& bound, bool left) {
  if (left) {
    if (bound.least && *bound.least < -kTiniest) return false;
    if (bound.least) bound.least = std::max(*bound.least, next_above(kTiniest));
    return true;
  }
  if (!bound.least || *bound.least > next_above(kTiniest)) return false;
  bound.least = std::min(*bound.least, -kTiniest);
  return true;
}

/// The split in the normal form; false where it has none.
bool normalize(const Model& model, Node& node) {
  const bool zero_left = node.kind == NodeKind::LessEqual ? 0 <= node.threshold : 0 < node.threshold;
  Bound bound = bound_of(node);
  if (node.missing == Missing::Zero) {
    if (!send_tiny(bound, node.missing_left)) return false;
  } else if (model.tiny_is_zero) {
    if (!send_tiny(bound, zero_left)) return false;
  }
  if (node.missing == Missing::None) node.missing_left = zero_left;
  if (!bound.least) {  // no number is below -inf: all go left by going right
    std::swap(node.left, node.right);
    node.missing_left = !node.missing_left;
  }
  node.kind = NodeKind::Less;
  node.missing = Missing::Nan;
  node.threshold = static_cast<double>(bound.least.value_or(-kInfinity));
  return true;
}

bool is_split(const Node& node) { return node.kind == NodeKind::Less || node.kind == NodeKind::LessEqual; }

bool is_normal(const Model& model) {
  if (model.score_type != ScalarType::Float32 || model.tiny_is_zero) return false;
  return std::all_of(model.trees.begin(), model.trees.end(), [](const Tree& tree) {
    return std::all_of(tree.nodes.begin(), tree.nodes.end(), [](const Node& node) {
      return !is_split(node) || (node.kind == NodeKind::Less && node.missing == Missing::Nan);
    });
  });
}

}  // namespace

Result<std::optional<Model>> normal_form(const Model& model) {
  if (is_normal(model)) return std::optional<Model>{};
  std::optional<Model> normal = model;
  for (std::size_t t = 0; t < normal->trees.size(); ++t) {
    std::vector<Node>& nodes = normal->trees[t].nodes;
    for (std::size_t n = 0; n < nodes.size(); ++n)
      if (is_split(nodes[n]) && !normalize(model, nodes[n]))
        return refused("tree " + std::to_string(t) + ", node " + std::to_string(n),
                       nodes[n].missing_left
                           ? "zero is missing and goes left, the numbers next to it right: not lowered yet"
                           : "zero is missing and goes right, the numbers next to it left: not lowered yet");
  }
  normal->tiny_is_zero = false;
  return normal;
}

}  // namespace forestvm::scheduler
