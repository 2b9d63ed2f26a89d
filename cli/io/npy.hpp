// NumPy's .npy format: rows in (versions 1.0 to 3.0, any real dtype, either byte order, C or Fortran order),
// predictions' header out. See numpy/lib/format.py for the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"
#include "cli/io/table.hpp"

namespace forestvm::cli {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// What arrays are taken: a vector counts as one column.
enum class NpyShape { Matrix, VectorOrMatrix };

/// Reads a two-dimensional array of real numbers, each rounded to the nearest float32; `source` must outlive
/// the reader. Refused: other shapes and types, a matrix of another width than the form's, a file shorter or
/// longer than its header says, and, where the form asks for exact numbers, the first that has to be rounded.
/// The header's counts are believed only as far as bytes arrive. An array in Fortran order is read whole
/// before its first row is there.
Result<std::unique_ptr<TableReader>> npy_reader(Source& source, NpyShape shape, const RowForm& form = {});

/// The bytes that numpy.save writes before a C-order array of this dtype ("<f4") and shape: of one or two
/// dimensions, as many bytes whatever those are.
std::string npy_header(std::string_view dtype, const std::vector<std::size_t>& shape);

}  // namespace forestvm::cli
