// Model -> its fingerprint: equal for models that predict alike by construction, whatever their names and
// labels.
#include <bit>

#include "scheduler/compilation.hpp"

namespace forestvm::scheduler {
namespace {

std::uint64_t hash_of(const Model& model) {
  std::uint64_t hash = 14695981039346656037ull;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 1099511628211ull; };
  const auto mix_double = [&](double value) { mix(std::bit_cast<std::uint64_t>(value)); };
  mix(model.num_features);
  mix(model.num_outputs);
  mix(static_cast<std::uint64_t>(model.class_rule) << 8 | static_cast<std::uint64_t>(model.transform));
  mix(static_cast<std::uint64_t>(model.pair) << 8 | std::uint64_t{model.base_last});
  mix(static_cast<std::uint64_t>(model.row_type) << 3 | static_cast<std::uint64_t>(model.score_type) << 2 |
      std::uint64_t{model.tiny_is_zero} << 1 | std::uint64_t{model.averaged});
  for (const double number : {model.slope, model.offset, model.divisor, model.scale}) mix_double(number);
  for (const double base : model.base) mix_double(base);
  for (const Tree& tree : model.trees) {
    mix(tree.output);
    mix_double(static_cast<double>(tree.weight));
    mix(tree.first_leaf);
    for (const Node& node : tree.nodes) {
      mix(static_cast<std::uint64_t>(node.missing) << 8 | static_cast<std::uint64_t>(node.kind) << 1 |
          node.missing_left);
      mix(std::uint64_t{node.feature} << 32 | static_cast<std::uint32_t>(node.left));
      mix(static_cast<std::uint32_t>(node.right));
      mix_double(node.threshold);
      mix_double(node.value);
      if (node.kind == NodeKind::Category || tree.leaf_width > 1) mix(node.payload);
    }
    for (const double value : tree.leaf_vectors) mix_double(value);
    for (const CategorySet& set : tree.category_sets) {
      mix(std::uint64_t{set.codes.size()} << 2 | std::uint64_t{set.fractions} << 1 | set.members_left);
      for (const std::uint32_t code : set.codes) mix(code);
    }
  }
  return hash;
}

}  // namespace

Result<void> fingerprint(Compilation& compilation) {
  compilation.fingerprint = hash_of(compilation.model);
  return {};
}

}  // namespace forestvm::scheduler
