// Reads rows in NumPy's .npy format (versions 1.0 to 3.0, any real dtype, either byte order, C or Fortran order) and
// writes the header of predictions. numpy/lib/format.py describes the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/internal/npy_header.hpp>
#include <forestvm/result.hpp>

#include "cli/io/source.hpp"
#include "cli/io/table.hpp"

namespace forestvm::cli {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// The shapes that are accepted: a vector counts as one column.
enum class NpyShape { Matrix, VectorOrMatrix };

/// Reads a two-dimensional array of real numbers. Numbers are rounded to the nearest float32 or, if the form says that
/// numbers are compared in float64 and the array's type is not narrower than that, read as float64. `source` must
/// outlive the reader. Refuses other shapes and types, a matrix whose width is not the form's, a file shorter or longer
/// than its header says, and, if numbers are compared in float64, the first number that float64 would round. Memory
/// grows only as bytes arrive, whatever the header's counts. An array in Fortran order is read whole before its first
/// row is returned.
Result<std::unique_ptr<TableReader>> npy_reader(Source& source, NpyShape shape, const RowForm& form = {});

/// Reads the bytes before the values: magic, version, length and text.
Result<NpyHeader> read_npy_header(Source& source);

/// Returns the bytes that numpy.save writes before a C-order array of this dtype ("<f4") and shape. For one
/// or two dimensions the length is always the same.
std::string npy_header(std::string_view dtype, const std::vector<std::size_t>& shape);

}  // namespace forestvm::cli
