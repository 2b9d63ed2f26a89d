// Makes a Model's features of CatBoost's: which of them are hashed, which columns are looked up for one-hot tests and
// counters, and what each of CatBoost's numbered splits compares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <forestvm/load.hpp>
#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/catboost_parts.hpp"

namespace forestvm::frontend {

/// A split of CatBoost's trees, as a node of a Model makes it.
struct CatboostSplit {
  NodeKind kind = NodeKind::LessEqual;
  std::uint32_t feature = 0;
  float threshold = 0;     ///< The largest value that goes left at a LessEqual split.
  std::uint32_t code = 0;  ///< The only code that goes right at a Category split.
  bool missing_left = true;
};

/// Sets the model's features, hashed features and lookups; returns the splits, in CatBoost's order. `file_bytes` is the
/// size of the file, to which the memory of lookups must be proportional.
Result<std::vector<CatboostSplit>> add_columns(const CatboostParts& parts, std::size_t file_bytes,
                                               const LoadLimits& limits, Model& model);

}  // namespace forestvm::frontend
