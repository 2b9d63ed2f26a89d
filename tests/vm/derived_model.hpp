// Models with derived columns, rows for them, and a slow second opinion on what the columns hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/model.hpp>

namespace forestvm::test {

/// The categories of a lookup's keys.
enum class Categories : std::uint8_t { Any, One };

/// Returns a forest over six features, of which 1, 3 and 5 are hashed, nine lookups and five linear columns, drawn from
/// `seed`. Keys of tables stand side by side, and each table misses the keys of many rows.
Model derived_model(std::uint64_t seed, Categories categories = Categories::Any);

/// Returns rows for such models: whole numbers in hashed features, otherwise any numbers, NaN among them.
std::vector<double> derived_rows(std::uint64_t seed, std::size_t count);

/// Returns the same rows with the codes of the categories in hashed features.
std::vector<double> hashed_rows(const Model& model, std::vector<double> rows);

/// Returns the model without derived columns: they are features here. Rows for it are those of widened.
Model plain_model(const Model& model);

/// Returns the rows with their derived columns, computed one by one from the texts of categories. Hashed features are 0.
std::vector<double> widened(const Model& model, const std::vector<double>& rows);

}  // namespace forestvm::test
