// Vector leaves -> numbers of vectors in one table, and the parameters of the model's transform.
//
//   leaf [0.25 0.75], leaf [1 0], leaf [0.25 0.75]     ->     leaf 0, leaf 1, leaf 0; table [0.25 0.75] [1 0]
//
// Walks then keep every tree's number, and sum_trees adds the vectors in the model's order.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <unordered_map>

#include <forestvm/core/leaf_vectors.hpp>
#include <forestvm/internal/formatted.hpp>

#include "scheduler/compilation.hpp"

namespace forestvm::scheduler {
namespace {

/// The distinct vectors of a model's leaves. Pure leaves of classifiers are alike, so that the table stays small.
template <class Score>
class VectorTable {
 public:
  explicit VectorTable(std::uint32_t width) : vector_(width) {}

  /// Returns the number of a leaf's vector: its outputs multiplied by the tree's weight.
  Result<double> number(const Tree& tree, std::size_t leaf) {
    const Node& node = tree.nodes[leaf];
    std::fill(vector_.begin(), vector_.end(), Score{0});
    for (std::size_t k = 0; k < tree.leaf_width; ++k) {
      const double value = tree.leaf_width == 1
                               ? node.value
                               : tree.leaf_vectors[std::size_t{node.payload} * tree.leaf_width + k];
      vector_[tree.leaf_width == 1 ? tree.output : k] =
          static_cast<Score>(tree.weight) * static_cast<Score>(value);
    }
    std::string key(vector_.size() * sizeof(Score), '\0');
    std::memcpy(key.data(), vector_.data(), key.size());
    const auto [at, is_new] = numbers_.try_emplace(std::move(key), numbers_.size());
    if (is_new) {
      if (numbers_.size() > kMaxLeafVectors)
        return refused("model", "more than {} different vectors of leaves", kMaxLeafVectors);
      const auto bytes = std::as_bytes(std::span(vector_));
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    return static_cast<double>(at->second);
  }

  std::vector<std::byte> take_bytes() { return std::move(bytes_); }

 private:
  std::vector<Score> vector_;
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<std::byte> bytes_;
};

template <class Score>
Result<std::vector<std::byte>> number_leaves(Model& model) {
  VectorTable<Score> table(model.num_outputs);
  for (Tree& tree : model.trees) {
    for (std::size_t n = 0; n < tree.nodes.size(); ++n)
      if (tree.nodes[n].kind == NodeKind::Leaf) {
        FVM_ASSIGN(const double number, table.number(tree, n));
        tree.nodes[n].value = number;
      }
    tree.leaf_width = 1;
    tree.weight = 1;
    tree.output = 0;
    tree.leaf_vectors = {};
  }
  return table.take_bytes();
}

}  // namespace

Result<void> number_vectors(Compilation& compilation) {
  const Model& model = compilation.model;
  compilation.parameters = parameters_of(model, model.trees.size());
  const bool vectors = std::any_of(model.trees.begin(), model.trees.end(),
                                   [](const Tree& tree) { return tree.leaf_width > 1; });
  if (!vectors) return {};
  FVM_CHECK(compilation.rewritable != nullptr);
  for (Lowering& plan : compilation.plans) plan.numbered = true;
  const bool wide = model.score_type == ScalarType::Float64;
  FVM_ASSIGN(compilation.leaf_vectors, wide ? number_leaves<double>(*compilation.rewritable)
                                            : number_leaves<float>(*compilation.rewritable));
  return {};
}

}  // namespace forestvm::scheduler
