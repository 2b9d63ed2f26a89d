// Small models written by hand, by name, for golden files, refusals and unit tests. Trees are composed with
// leaf() and split().
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <forestvm/model.hpp>

namespace forestvm::support {

inline Tree leaf(double value) {
  Tree tree;
  tree.nodes.resize(1);
  tree.nodes[0].value = value;
  return tree;
}

/// Returns a tree: `feature` < threshold ? left : right; a missing value goes left if `missing_left`.
inline Tree split(std::uint32_t feature, double threshold, const Tree& left, const Tree& right,
                  bool missing_left = false) {
  Tree tree;
  tree.nodes.resize(1);
  Node& root = tree.nodes[0];
  root.kind = NodeKind::Less;
  root.feature = feature;
  root.threshold = threshold;
  root.missing_left = missing_left;
  root.left = 1;
  root.right = static_cast<std::int32_t>(1 + left.nodes.size());
  for (const Tree* side : {&left, &right}) {
    const auto shift = static_cast<std::int32_t>(tree.nodes.size());
    for (Node node : side->nodes) {
      if (node.left >= 0) node.left += shift;
      if (node.right >= 0) node.right += shift;
      tree.nodes.push_back(node);
    }
  }
  return tree;
}

/// Returns a tree whose only deep leaf is `depth` steps away.
inline Tree chain(std::uint32_t depth) {
  Tree tree = leaf(0.5);
  for (std::uint32_t i = 0; i < depth; ++i) tree = split(i % 4, 1.0 + i, tree, leaf(0.25 * i), i % 2 == 0);
  return tree;
}

inline Model model_of(std::vector<Tree> trees, std::uint32_t outputs = 1) {
  Model model;
  model.format = "by-hand";
  model.trainer = "by-hand";
  model.version = "1.0";
  model.objective = outputs == 1 ? "binary:logistic" : "multi:softprob";
  model.num_features = 4;
  model.num_outputs = outputs;
  for (std::uint32_t k = 0; k < outputs; ++k) model.base.push_back(0.5 - k);
  model.transform = outputs == 1 ? Transform::Sigmoid : Transform::Softmax;
  model.class_rule = outputs == 1 ? ClassRule::AboveHalf : ClassRule::Argmax;
  model.trees = std::move(trees);
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    model.trees[t].output = static_cast<std::uint32_t>(t % outputs);
    model.round_begins.push_back(static_cast<std::uint32_t>(t));
  }
  model.round_begins.push_back(static_cast<std::uint32_t>(model.trees.size()));
  return model;
}

/// Returns six trees: two of depth 1, two of depth 2 (one with a leaf at 1), two of depth 3 (one of them a
/// chain).
inline std::vector<Tree> six_trees() {
  const auto stump = [](std::uint32_t feature, double threshold, double value) {
    return split(feature, threshold, leaf(value), leaf(-value), true);
  };
  return {
      stump(0, 0.5, 0.125),
      stump(1, -1.5, 0.25),
      split(2, 2, stump(0, 0.25, 1), stump(3, 8, 2)),
      split(3, 0, leaf(-0.75), stump(1, 3, 4)),
      split(0, 1, split(1, 1, stump(2, 1, 8), stump(3, 1, 16)),
            split(2, 4, stump(0, 2, 32), stump(1, 2, 64))),
      chain(3),
  };
}

/// Gives every node a cover: three quarters of its parent's to the left.
inline void cover(Tree& tree, std::size_t at, float rows) {
  tree.nodes[at].cover = rows;
  if (tree.nodes[at].kind == NodeKind::Leaf) return;
  cover(tree, static_cast<std::size_t>(tree.nodes[at].left), rows * 0.75f);
  cover(tree, static_cast<std::size_t>(tree.nodes[at].right), rows * 0.25f);
}

/// Makes leaves linear functions of up to two features, as LightGBM's linear_tree does; every third tree keeps its
/// values.
inline void make_linear(Model& model) {
  model.row_type = model.score_type = ScalarType::Float64;
  model.tiny_is_zero = true;
  for (std::size_t t = 0; t < model.trees.size(); ++t)
    for (Node& node : model.trees[t].nodes) {
      if (t % 3 == 2 || node.kind != NodeKind::Leaf) continue;
      std::vector<LinearLeaf>& leaves = model.trees[t].linear_leaves;
      node.payload = static_cast<std::uint32_t>(leaves.size());
      LinearLeaf leaf{1.1 * node.value, {}, {}};
      for (std::size_t k = 0; k < leaves.size() % 3; ++k) {
        leaf.features.push_back(static_cast<std::uint32_t>((t + leaves.size() + k) % model.num_features));
        leaf.coefficients.push_back(0.1 * static_cast<double>(t + 1) - static_cast<double>(k));
      }
      leaves.push_back(leaf);
    }
}

/// Makes a tree's leaves vectors: v, 0.25, -v for a leaf of value v.
template <class NumberOf>
void make_vectors(Tree& tree, std::uint32_t width, NumberOf number_of) {
  tree.output = 0;
  tree.leaf_width = width;
  for (Node& node : tree.nodes) {
    if (node.kind != NodeKind::Leaf) continue;
    node.payload = static_cast<std::uint32_t>(tree.leaf_vectors.size() / width);
    for (std::uint32_t k = 0; k < width; ++k) tree.leaf_vectors.push_back(number_of(node, k));
  }
}

/// Gives each leaf a vector that begins with its value.
inline void make_vectors(Tree& tree, std::uint32_t width) {
  make_vectors(tree, width, [](const Node& node, std::uint32_t k) {
    return k == 0 ? node.value : k == 1 ? 0.25 : -node.value;
  });
}

/// Returns one of: small; two_outputs (trees of small, every other one for output 1); base_last; covered
/// (rows mostly go left); deep (one chain of 40 steps); leaves (two trees that are a leaf); none (no trees);
/// wide (300 stumps, 65,536 outputs); fine (leaves whose exact sums take 128 bits); far (leaves without exact
/// sums); float64 (float64 sums); zeros (float64 sums; zero is missing to one split of a feature and a number
/// to another); categories (three categorical splits of two sets); lightgbm and lightgbm_classes (float64,
/// splits with <=, tiny numbers are zeros, as LightGBM writes them; one output, or two); vectors and
/// vectors64 (vector leaves of three outputs; float32, or float64 sums of float32 rows).
inline Model small_model(const std::string& name) {
  if (name == "small") return model_of(six_trees());
  if (name == "two_outputs") return model_of(six_trees(), 2);
  if (name == "deep") return model_of({split(0, 0.5, leaf(1), leaf(2)), chain(40)});
  if (name == "leaves") return model_of({leaf(1.5), leaf(-0.25)});
  if (name == "none") return model_of({});
  if (name == "wide") return model_of(std::vector<Tree>(300, split(0, 0.5, leaf(1), leaf(2))), 65'536);
  if (name == "fine") return model_of({split(0, 0.5, leaf(0x1p-40), leaf(2)), leaf(0x1p50), chain(2)});
  if (name == "far") return model_of({split(0, 0.5, leaf(0x1p-100), leaf(2)), leaf(0x1p100), chain(2)});
  if (name == "covered") {
    Model model = model_of(six_trees());
    for (Tree& tree : model.trees) cover(tree, 0, 64);
    return model;
  }
  if (name == "float64" || name == "zeros") {
    Model model = model_of(six_trees());
    model.row_type = model.score_type = ScalarType::Float64;
    if (name == "zeros") model.trees[0].nodes[0].missing = Missing::Zero;
    if (name == "zeros") model.trees[0].nodes[0].missing_left = false;
    return model;
  }
  if (name == "lightgbm" || name == "lightgbm_classes") {
    Model model = model_of(six_trees(), name == "lightgbm" ? 1 : 2);
    model.row_type = model.score_type = ScalarType::Float64;
    model.tiny_is_zero = true;
    for (Tree& tree : model.trees)
      for (Node& node : tree.nodes)
        if (node.kind == NodeKind::Less) node.kind = NodeKind::LessEqual;
    return model;
  }
  if (name == "vectors" || name == "vectors64") {
    Model model = model_of(six_trees(), 3);
    if (name == "vectors64") model.score_type = ScalarType::Float64;
    for (Tree& tree : model.trees) make_vectors(tree, 3);
    return model;
  }
  if (name == "categories") {
    Model model = model_of(six_trees());
    for (const std::size_t t : {std::size_t{0}, std::size_t{2}, std::size_t{4}}) {
      Tree& tree = model.trees[t];
      tree.category_sets = {{{1, 2, 3, 40}, false}};
      if (t == 4) tree.category_sets = {{{0, 7}, true, CategoryRule::AboveMinusOne}};
      tree.nodes[0].kind = NodeKind::Category;
      tree.nodes[0].threshold = 0;
      tree.nodes[0].feature = t == 4 ? 2 : 1;
      tree.nodes[0].missing_left = t != 4;
    }
    return model;
  }
  if (name == "base_last") {
    Model model = model_of(six_trees());
    model.base_last = true;
    return model;
  }
  throw std::runtime_error("no small model is called " + name);
}

}  // namespace forestvm::support
