// A few rows of polars.DataFrame as Python's numbers. polars makes these in a tenth of the time that the export of the
// columns takes.
#pragma once

#include "bindings/python/core/python.hpp"

#include <cstddef>
#include <optional>
#include <vector>

#include <forestvm/backend.hpp>

#include "bindings/python/core/arguments.hpp"
#include "bindings/python/core/arrow_order.hpp"
#include "bindings/python/core/forest.hpp"

namespace forestvm::python {

/// Reads a frame's rows into `values`. Returns nothing, without a Python exception, if they must be read as Arrow's:
/// if there are none or many, if the columns are not those that were matched last, with the same options, or if a value
/// is not a number, or one that float64 rounds.
std::optional<RowBlock> few_rows(const Forest& forest, const Arguments& given, const ArrowOrder& order,
                                 std::vector<double>& values);

}  // namespace forestvm::python
