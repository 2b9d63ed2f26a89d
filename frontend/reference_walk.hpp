// Makes the tests of splits and computes the outputs of leaves for the reference predictor: in the trainer's types,
// from the model itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <forestvm/core/category_rules.hpp>
#include <forestvm/model.hpp>

namespace forestvm::frontend {

inline bool is_tiny(double x) { return std::abs(x) <= kTiny; }

inline bool is_missing(Missing kind, double x) {
  switch (kind) {
    case Missing::Nan:
      return std::isnan(x);
    case Missing::None:
      return false;
    case Missing::Zero:
      return std::isnan(x) || is_tiny(x);
  }
  return false;
}

inline bool is_in(const CategorySet& set, double x) {
  double named = std::trunc(x);
  switch (set.rule) {
    case CategoryRule::WholePart:
      if (x < 0) return false;
      break;
    case CategoryRule::AboveMinusOne:
      if (x <= -1) return false;
      break;
    case CategoryRule::Whole:
      if (x < 0 || x != named) return false;
      break;
    case CategoryRule::Byte:
      if (x < 0) return false;
      named = byte_of(x);
      break;
    case CategoryRule::SignedByte:
      named = byte_of(x);
      break;
  }
  return std::any_of(set.codes.begin(), set.codes.end(),
                     [named](std::uint32_t code) { return named == code; });
}

/// Scalar is the model's row_type.
template <class Scalar>
bool goes_left(const Tree& tree, const Node& node, Scalar x) {
  if (is_missing(node.missing, static_cast<double>(x))) return node.missing_left;
  if (std::isnan(x)) x = 0;
  if (node.kind == NodeKind::Category) {
    const CategorySet& set = tree.category_sets[node.payload];
    return is_in(set, static_cast<double>(x)) == set.members_left;
  }
  const auto threshold = static_cast<Scalar>(node.threshold);
  return node.kind == NodeKind::Less ? x < threshold : x <= threshold;
}

/// Returns what the splits of a feature compare for a number, which is not rounded to the model's row_type yet.
inline double number_compared(const Model& model, std::uint32_t feature, double x) {
  const std::vector<std::uint32_t>& whole = model.whole_features;
  if (std::isnan(x) || is_int32(x) || !std::binary_search(whole.begin(), whole.end(), feature)) return x;
  return std::numeric_limits<double>::infinity();
}

/// Returns whether a row with this number goes left at a split. Scalar is the model's row_type.
template <class Scalar>
bool number_goes_left(const Model& model, const Tree& tree, const Node& node, double number) {
  auto x = static_cast<Scalar>(number_compared(model, node.feature, number));
  if (model.tiny_is_zero && is_tiny(static_cast<double>(x))) x = 0;
  return goes_left(tree, node, x);
}

/// Returns whether a row goes left at a split. Scalar is the model's row_type.
template <class Scalar, class Value>
bool row_goes_left(const Model& model, const Tree& tree, const Node& node, std::span<const Value> row) {
  return number_goes_left<Scalar>(model, tree, node, static_cast<double>(row[node.feature]));
}

/// Returns what a leaf adds to output k of a tree with vector leaves, or to the tree's output, in sums that are not
/// rounded: its value with the weights of the tree, rounded as the trainer does, and of the model.
inline long double weighted_output(const Model& model, const Tree& tree, const Node& leaf, std::size_t k) {
  const double value =
      tree.leaf_width == 1 ? leaf.value : tree.leaf_vectors[std::size_t{leaf.payload} * tree.leaf_width + k];
  const double weighted = model.score_type == ScalarType::Float32
                              ? static_cast<double>(tree.weight * static_cast<float>(value))
                              : static_cast<double>(tree.weight) * value;
  return static_cast<long double>(weighted) * static_cast<long double>(model.scale);
}

/// Returns the index of the leaf that a row reaches. Scalar is the model's row_type.
template <class Scalar, class Value>
std::size_t leaf_in(const Model& model, const Tree& tree, std::span<const Value> row) {
  std::size_t at = 0;
  while (tree.nodes[at].kind != NodeKind::Leaf) {
    const Node& node = tree.nodes[at];
    at = static_cast<std::size_t>(row_goes_left<Scalar>(model, tree, node, row) ? node.left : node.right);
  }
  return at;
}

}  // namespace forestvm::frontend
