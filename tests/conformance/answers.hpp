// Finds the answers that a model's compiled programs must give: the trainer's own, or the reference predictor's where
// the trainer promises no bits.
#pragma once

#include <cstddef>

#include <forestvm/backend.hpp>
#include <forestvm/internal/reference.hpp>
#include <forestvm/model.hpp>

#include "support/model_folders.hpp"

namespace forestvm::test {

/// Reads the rows and the answers beside a model file. Where the trainer gives no raw scores, and for ONNX, the answers
/// are the reference predictor's numbers, rounded to float32. ONNX Runtime's own sums depend on its number of threads;
/// other tests compare them with the reference predictor's within a bound (tests/support/trainer_answers.hpp).
support::Answers answers_of(const support::ModelFile& file, const Model& model);

/// Returns `count` of the rows, from number `begin` on.
template <class Score>
RowBlock rows_of(const support::AnswersOf<Score>& answers, std::size_t begin, std::size_t count) {
  if (answers.codes.empty()) return {answers.rows.data() + begin * answers.features, count, answers.features};
  RowBlock rows{answers.codes.data() + begin * answers.features, count, answers.features, RowType::Float64};
  rows.hashed = true;
  return rows;
}

/// Predicts all rows with the reference predictor, with numbers of leaves.
Reference reference_of(const Model& model, const support::Answers& answers, std::size_t count);

}  // namespace forestvm::test
