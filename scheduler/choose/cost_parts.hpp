// Predicts what the parts of calls cost, to explain times and plans. The costs of encoding are computed from the
// columns, features and thresholds, those of reducing and transforming from the outputs; walking has the rest of the
// cost that the predictor of walks gives.
#pragma once

#include <cstdint>
#include <optional>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/model.hpp>
#include <forestvm/schedule.hpp>

namespace forestvm::scheduler {

/// The microseconds that the parts of a call take for each row, in one thread.
struct CostParts {
  double encode = 0;
  double walk = 0;       ///< Trees are walked, and leaves added.
  double reduce = 0;     ///< The call begins, loops run, and sums are begun and stored.
  double transform = 0;  ///< Sums become what the trainer's predict gives.
};

/// Predicts the costs of calls of `rows` rows on a CPU by the plan that a schedule has for them. Returns std::nullopt
/// if the plan is not one among which `auto` chooses, or if the model's costs are not predicted.
std::optional<CostParts> predicted_parts(const Model& model, const Schedule& schedule, std::uint32_t rows,
                                         CpuTarget cpu);

}  // namespace forestvm::scheduler
