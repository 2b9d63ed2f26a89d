// Models with derived columns, rows for them, and a slow second opinion on what the columns hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/model.hpp>

namespace forestvm::test {

/// The number of categories in the key of a lookup: any, or one.
enum class Categories : std::uint8_t { Any, One };

/// Returns a random forest over six features, of which 1, 3 and 5 are hashed, nine lookups and a computed column
/// of each kind. Keys of tables are close together, and each table lacks the keys of many rows.
Model derived_model(std::uint64_t seed, Categories categories = Categories::Any);

/// Returns random rows for models of derived_model: whole numbers in hashed features, any numbers or NaN in others.
std::vector<double> derived_rows(std::uint64_t seed, std::size_t count);

/// Returns the rows with the codes of the categories in hashed features.
std::vector<double> hashed_rows(const Model& model, std::vector<double> rows);

/// Returns a model in which the derived columns are features. Its rows are the results of widened.
Model plain_model(const Model& model);

/// Returns the rows with their derived columns, computed one by one from the texts of categories. Hashed features are
/// 0.
std::vector<double> widened(const Model& model, const std::vector<double>& rows);

}  // namespace forestvm::test
