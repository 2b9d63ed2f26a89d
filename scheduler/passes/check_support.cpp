// Refuses by name, with tree and node where there is one, what no pass can lower yet, so that the passes after this
// one need not check it.
#include "scheduler/compilation.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler {

namespace {

/// Refuses derived columns where values change before they are compared: columns are computed from float32 numbers.
Result<void> check_columns(const Model& model) {
  if (num_columns(model) > kMaxFeatures)
    return refused("model", "it has {} features and derived columns, at most {}", num_columns(model),
                   kMaxFeatures);
  if (num_columns(model) == model.num_features && model.hashed_features.empty()) return {};
  const auto wrong = [](const std::string& what) {
    return refused("model", "derived columns {}: not lowered yet", what);
  };
  if (model.row_type != ScalarType::Float32) return wrong("of float64 rows");
  if (model.tiny_is_zero) return wrong("of rows whose tiny numbers are zero");
  if (!model.whole_features.empty()) return wrong("beside features of whole numbers");
  for (std::size_t t = 0; t < model.trees.size(); ++t)
    for (std::size_t n = 0; n < model.trees[t].nodes.size(); ++n)
      if (model.trees[t].nodes[n].missing == Missing::Zero)
        return refused(formatted("tree {}, node {}", t, n),
                       "zero is missing here, in a model with derived columns: not lowered yet");
  return {};
}

/// Refuses linear leaves other than LightGBM's, whose functions are computed and added in float64.
Result<void> check_linear_leaves(const Model& model) {
  if (model.row_type != ScalarType::Float64 || !model.tiny_is_zero)
    return refused(
        "model", "linear leaves of values that are not compared as LightGBM compares them: not lowered yet");
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    const auto wrong = [t](const std::string& what) {
      return refused(formatted("tree {}, node 0", t), "{} beside linear leaves are not lowered yet", what);
    };
    if (model.trees[t].leaf_width != 1) return wrong("vector leaves");
    if (model.trees[t].weight != 1) return wrong("weights of trees");
  }
  return {};
}

}  // namespace

Result<void> check_support(Compilation& compilation) {
  const Model& model = compilation.model;
  if (model.trees.size() >= UINT32_MAX)
    return refused("model", "it has {} trees, at most {}", model.trees.size(), UINT32_MAX - 1);
  if (model.num_features == 0) return refused("model", "it has no features");
  FVM_TRY(check_columns(model));
  if (has_linear_leaves(model)) FVM_TRY(check_linear_leaves(model));
  return {};
}

}  // namespace forestvm::scheduler
