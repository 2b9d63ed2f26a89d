// A table of rows as a file gave it: what the readers make and rows.hpp fits to a model.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace forestvm::cli {

struct Table {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<float> values;       ///< rows x columns, row-major; NaN is a missing value
  std::vector<std::string> names;  ///< of the columns, when the file has them; else empty
  bool rounded = false;            ///< some number of an NPY array lies between two float32
  bool mixed_header = false;       ///< some of the names are numbers: a header only if the model knows them
};

}  // namespace forestvm::cli
