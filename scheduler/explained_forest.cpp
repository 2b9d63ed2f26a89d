// See explained_forest.hpp.
#include "scheduler/explained_forest.hpp"

#include <cstdint>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler {

std::vector<OutputKind> explained_outputs(const CompileOptions& options) {
  std::vector<OutputKind> outputs;
  if (options.contributions || options.interactions || options.background)
    outputs.push_back(OutputKind::Contributions);
  if (options.interactions) outputs.push_back(OutputKind::Interactions);
  return outputs;
}

Result<void> check_contributions(const Model& model) {
  if (has_linear_leaves(model))
    return refused("model",
                   "its leaves are linear functions of the row, for which contributions are not defined");
  const std::uint64_t width = model.num_outputs * (std::uint64_t{model.num_features} + 1);
  if (width <= kMaxContributions) return {};
  return refused("model", "a row would have {} contributions, at most {}", width, kMaxContributions);
}

}  // namespace forestvm::scheduler
