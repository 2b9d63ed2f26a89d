// Computes the columns that a model derives from a row's features (Model::lookups, computed_columns), as the reference
// predictor does it: row by row, without tables made for speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// Returns the key of a Lookup with one more part: see Lookup.
constexpr std::uint64_t extend_key(std::uint64_t key, std::int64_t part) {
  constexpr std::uint64_t factor = 0x4906ba494954cb65;
  return factor * (key + factor * static_cast<std::uint64_t>(part));
}

/// Returns the rows with the model's derived columns after the features of each: num_columns(model) numbers per row.
/// `rows` has row_count x model.num_features numbers. `hashed_rows` is true if hashed features hold the codes of
/// categories; otherwise they hold whole numbers, which stand for their decimal text. Refuses other numbers there.
Result<std::vector<double>> with_derived_columns(const Model& model, std::span<const double> rows,
                                                 std::size_t row_count, bool hashed_rows);

}  // namespace forestvm::frontend
