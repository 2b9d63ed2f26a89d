// Finds the answers that a model's compiled programs must give: the trainer's own, or the reference predictor's where the
// trainer promises no bits.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <forestvm/model.hpp>

#include "support/model_folders.hpp"

namespace forestvm::test {

/// Reads the rows and answers beside a model file. ONNX Runtime's sums depend on its number of threads, and its answers
/// are compared with the reference predictor's within a bound (tests/frontend/test_onnx_answers.cpp); here programs must
/// give the reference predictor's own numbers, rounded to float32. So must raw scores that the trainer does not give.
support::Answers answers_of(const support::ModelFile& file, const Model& model);

/// Returns CatBoost's model files, in the folders inside `parent` whose names start with `prefix`, that have no
/// categories: float32 rows say all about them.
std::vector<support::ModelFile> catboost_number_files(const std::filesystem::path& parent,
                                                      const std::string& prefix);

}  // namespace forestvm::test
