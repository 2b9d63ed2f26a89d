// Reads rows from NumPy's .npz archives: one dense array, or a sparse matrix of scipy.sparse.save_npz in CSR form.
#pragma once

#include <memory>
#include <string_view>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"
#include "cli/io/table.hpp"

namespace forestvm::cli {

/// The first bytes of a ZIP archive with files in it, and of an empty one.
inline constexpr std::string_view kZipMagic = "PK\x03\x04";
inline constexpr std::string_view kEmptyZipMagic = "PK\x05\x06";

/// Reads the rows of an archive, stored or compressed. The archive holds a CSR matrix, for which the form says what
/// absent values are, or arrays. Of these the reader takes the one that the form names, or the only one, and reads it
/// as npy_reader does. Refuses an archive of several arrays if the form names none, sparse matrices of other forms, and
/// a CSR matrix whose arrays contradict one another. Memory holds a block of rows. `source` must outlive the reader.
Result<std::unique_ptr<TableReader>> npz_reader(Source& source, const RowForm& form);

}  // namespace forestvm::cli
