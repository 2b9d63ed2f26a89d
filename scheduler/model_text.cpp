// The printed form of a Model: its facts, then every tree, a node a line, numbered as the trainer does.
#include "scheduler/model_text.hpp"

#include <charconv>

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
    if (last != i) text += ":" + std::to_string(set.codes[last]);
    i = last + 1;
  }
  return "{" + text + "}";
}

/// Returns the function of a leaf: "0.5 + 2 * f1, or 0.25 if one is missing".
std::string linear_text(const LinearLeaf& leaf, double value) {
  std::string text = number(leaf.constant, ScalarType::Float64);
  for (std::size_t i = 0; i < leaf.features.size(); ++i)
    text +=
        " + " + number(leaf.coefficients[i], ScalarType::Float64) + " * f" + std::to_string(leaf.features[i]);
  return text + ", or " + number(value, ScalarType::Float64) + " if one is missing";
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
  std::string text = "f" + std::to_string(node.feature);
  if (node.kind == NodeKind::Category) {
    const CategorySet& set = tree.category_sets[node.payload];
    text += (set.members_left ? " in " : " not in ") + set_text(set) + rule_text(set.rule);
  } else {
    text += (node.kind == NodeKind::Less ? " < " : " <= ") + number(node.threshold, model.row_type);
  }
  return text + " ? " + std::to_string(node.left) + " : " + std::to_string(node.right) + ", missing " +
         (node.missing_left ? "left" : "right");
}

/// Describes what is derived from features, numbered as nodes do.
std::string columns_text(const Model& model) {
  std::string text;
  if (!model.hashed_features.empty()) text += "hashed:";
  for (const std::uint32_t feature : model.hashed_features) text += " f" + std::to_string(feature);
  if (!model.hashed_features.empty()) text += "\n";
  std::uint64_t column = model.num_features;
  for (const Lookup& lookup : model.lookups) {
    text += "f" + std::to_string(column) + ": " + std::to_string(lookup.width) + " columns by";
    for (const std::uint32_t feature : lookup.categories) text += " f" + std::to_string(feature);
    text += ", " + std::to_string(lookup.value_tests.size() + lookup.code_tests.size()) + " tests, " +
            std::to_string(lookup.keys.size()) + " keys\n";
    column += lookup.width;
  }
  for (const ComputedColumn& computed : model.computed_columns)
    text +=
        "f" + std::to_string(column++) + ": " + computed_column_text(computed.kind, computed.terms) + "\n";
  return text;
}

}  // namespace

std::string print(const Model& model) {
  std::string text = "model " + model.format + " " + model.version + ", objective " + model.objective + "\n";
  text += std::to_string(model.num_features) + " features, " + std::to_string(model.num_outputs) +
          " outputs, " + std::to_string(model.trees.size()) + " trees, transform " +
          std::string(name_of(model.transform)) + ", class " + std::string(name_of(model.class_rule));
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
    text += "tree " + std::to_string(t) + ": output " + std::to_string(tree.output);
    if (tree.weight != 1) text += ", weight " + number(static_cast<double>(tree.weight), ScalarType::Float32);
    text += "\n";
    for (std::size_t n = 0; n < tree.nodes.size(); ++n)
      text += "  " + std::to_string(n) + ": " + node_text(model, tree, tree.nodes[n]) + "\n";
  }
  return text;
}

}  // namespace forestvm::scheduler
