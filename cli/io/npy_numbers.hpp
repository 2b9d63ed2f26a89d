// Reads all numbers of an NPY file, for arrays that are needed whole.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::cli {

/// The numbers of an array of shape (rows,) or (rows, columns), row after row.
struct NpyNumbers {
  std::vector<double> values;
  std::size_t columns = 0;
};

/// Reads a file, plain or gzip. Errors name it.
Result<NpyNumbers> read_npy_numbers(const std::string& path);

}  // namespace forestvm::cli
