// Chooses the boosting rounds of a model that predictions use. Implemented by frontend/.
#pragma once

#include <cstdint>

#include <forestvm/core/rounds.hpp>
#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// Returns the number of a model's rounds.
inline std::uint32_t round_count(const Model& model) {
  return static_cast<std::uint32_t>(model.round_begins.size() - 1);
}

/// Returns the rounds up to and with the best one that early stopping found. Refused if the model's file names none.
Result<Rounds> best_rounds(const Model& model);

/// Removes all trees outside `rounds` from a model, which must have passed load_model. Predictions are then
/// the trainer's for these rounds: XGBoost's iteration_range, LightGBM's start_iteration and num_iteration,
/// CatBoost's ntree_start and ntree_end. Usage if the rounds are empty, reversed or beyond the model's. Refused for
/// models whose trees are no rounds of boosting, such as isolation forests.
Result<void> keep_rounds(Model& model, Rounds rounds);

}  // namespace forestvm
