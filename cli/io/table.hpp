// A table of rows as a file gives it, block after block: what the readers make and rows.hpp fits to a model.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::cli {

struct TableHeader {
  std::size_t columns = 0;
  std::optional<std::size_t> rows;  ///< where the file says it at its beginning
  std::vector<std::string> names;   ///< of the columns, when the file has them; else empty
  bool mixed_header = false;        ///< some of the names are numbers: a header only if the model knows them
};

/// Reads on where it stopped; keeps no more than it is asked for.
class TableReader {
 public:
  virtual ~TableReader() = default;

  const TableHeader& header() const { return header_; }

  /// Appends the values of up to `most` rows, row-major, NaN for a missing one. Result: the number of rows;
  /// fewer than `most` only at the end. What is wrong with the file is said when it is come to.
  virtual Result<std::size_t> read(std::size_t most, std::vector<float>& values) = 0;

  /// Whether some number of an NPY array that was read lies between two float32.
  bool rounded() const { return rounded_; }

 protected:
  TableHeader header_;
  bool rounded_ = false;
};

}  // namespace forestvm::cli
