// Rows that are hard for a model: on its thresholds and beside them, its categories and numbers beside these, codes
// that its lookups know, and special numbers.
#pragma once

#include <cstddef>
#include <vector>

#include <forestvm/model.hpp>

#include "conformance/dice.hpp"

namespace forestvm::test {

/// Returns `count` rows, row-major, with codes of categories in hashed features. Numbers are float64 where the model
/// compares in float64; others are to be rounded to float32.
std::vector<double> rows_for(Dice& dice, const Model& model, std::size_t count);

}  // namespace forestvm::test
