// The printed form of a Model: its facts, then every tree, a node a line, numbered as the trainer does.
#include "scheduler/model_text.hpp"

#include <charconv>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/internal/program_tools.hpp>

namespace forestvm::scheduler {
namespace {

/// Returns the shortest text that reads back to the same bits.
std::string number(double value, ScalarType type) {
  char text[32];
  const auto end = type == ScalarType::Float32
                       ? std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr
                       : std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

/// Returns the codes of a set of categories; runs of codes are written as first:last.
std::string set_text(const CategorySet& set) {
  std::string text;
  for (std::size_t i = 0; i < set.codes.size();) {
    std::size_t last = i;
    while (last + 1 < set.codes.size() && set.codes[last + 1] == set.codes[last] + 1) ++last;
    text += (i == 0 ? "" : " ") + std::to_string(set.codes[i]);
    if (last != i) text += formatted(":{}", set.codes[last]);
    i = last + 1;
  }
  return formatted("{{}}", text);
}

/// Returns the function of a leaf: "0.5 + 2 * f1, or 0.25 if one is missing".
std::string linear_text(const LinearLeaf& leaf, double value) {
  std::string text = number(leaf.constant, ScalarType::Float64);
  for (std::size_t i = 0; i < leaf.features.size(); ++i)
    text += formatted(" + {} * f{}", number(leaf.coefficients[i], ScalarType::Float64), leaf.features[i]);
  return formatted("{}, or {} if one is missing", text, number(value, ScalarType::Float64));
}

std::string leaf_text(const Tree& tree, const Node& node, ScalarType type) {
  if (!tree.linear_leaves.empty()) return "leaf " + linear_text(tree.linear_leaves[node.payload], node.value);
  if (tree.leaf_width == 1) return "leaf " + number(node.value, type);
  std::string text = "leaf";
  for (std::size_t k = 0; k < tree.leaf_width; ++k)
    text += " " + number(tree.leaf_vectors[std::size_t{node.payload} * tree.leaf_width + k], type);
  return text;
}

std::string rule_text(CategoryRule rule) {
  switch (rule) {
    case CategoryRule::WholePart:
    case CategoryRule::AboveMinusOne:
      return "";
    case CategoryRule::Whole:
      return ", whole";
    case CategoryRule::Byte:
      return ", bytes";
    case CategoryRule::SignedByte:
      return ", signed bytes";
  }
  return "";
}

std::string node_text(const Model& model, const Tree& tree, const Node& node) {
  switch (node.kind) {
    case NodeKind::Leaf:
      return leaf_text(tree, node, model.score_type);
    case NodeKind::Unused:
      return "unused";
    case NodeKind::Less:
    case NodeKind::LessEqual:
    case NodeKind::Category:
      break;
  }
  std::string text = formatted("f{}", node.feature);
  if (node.kind == NodeKind::Category) {
    const CategorySet& set = tree.category_sets[node.payload];
    text += (set.members_left ? " in " : " not in ") + set_text(set) + rule_text(set.rule);
  } else {
    text += (node.kind == NodeKind::Less ? " < " : " <= ") + number(node.threshold, model.row_type);
  }
  return formatted("{} ? {} : {}, missing {}", text, node.left, node.right,
                   node.missing_left ? "left" : "right");
}

/// Describes rules of features and what is derived from them, numbered as nodes do.
std::string columns_text(const Model& model) {
  std::string text;
  if (!model.hashed_features.empty()) text += "hashed:";
  for (const std::uint32_t feature : model.hashed_features) text += formatted(" f{}", feature);
  if (!model.hashed_features.empty()) text += "\n";
  if (!model.whole_features.empty()) text += "whole numbers:";
  for (const std::uint32_t feature : model.whole_features) text += formatted(" f{}", feature);
  if (!model.whole_features.empty()) text += "\n";
  std::uint64_t column = model.num_features;
  for (const Lookup& lookup : model.lookups) {
    text += formatted("f{}: {} columns by", column, lookup.width);
    for (const std::uint32_t feature : lookup.categories) text += formatted(" f{}", feature);
    text += formatted(", {} tests, {} keys\n", lookup.value_tests.size() + lookup.code_tests.size(),
                      lookup.keys.size());
    column += lookup.width;
  }
  for (const ComputedColumn& computed : model.computed_columns)
    text += formatted("f{}: {}\n", column++, computed_column_text(computed.kind, computed.terms));
  return text;
}

}  // namespace

std::string print(const Model& model) {
  std::string text = formatted("model {} {}, objective {}\n", model.format, model.version, model.objective);
  text +=
      formatted("{} features, {} outputs, {} trees, transform {}, class {}", model.num_features,
                model.num_outputs, model.trees.size(), name_of(model.transform), name_of(model.class_rule));
  if (model.pair != Pair::None) text += ", pair " + std::string(name_of(model.pair));
  if (model.row_type != model.score_type) text += ", float32 rows and float64 sums";
  text += "\n";
  text += model.base_last ? "base, added last:" : "base:";
  for (const double base : model.base)
    text += " " + number(base, model.base_last ? ScalarType::Float64 : model.score_type);
  if (model.scale != 1)
    text += ", after the sum was multiplied by " + number(model.scale, ScalarType::Float64);
  text += "\n" + columns_text(model);
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    const Tree& tree = model.trees[t];
    text += formatted("tree {}: output {}", t, tree.output);
    if (tree.weight != 1) text += ", weight " + number(static_cast<double>(tree.weight), ScalarType::Float32);
    text += "\n";
    for (std::size_t n = 0; n < tree.nodes.size(); ++n)
      text += formatted("  {}: {}\n", n, node_text(model, tree, tree.nodes[n]));
  }
  return text;
}

}  // namespace forestvm::scheduler
