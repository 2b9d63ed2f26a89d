// A table of rows as a file gives it, block after block, fitted to what a model expects. The readers of CSV
// and NPY are TableReaders.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::cli {

/// Says if the first line of a CSV file is a header. Auto: it is if it looks like one, see csv_reader.
enum class Header { Auto, Yes, No };

/// The rows that a model expects, and how to read them.
struct RowForm {
  std::size_t width = 0;
  std::vector<std::string_view> names{};  ///< names of the features: `width` names, or none
  bool exact = false;                     ///< true: numbers that are no float32 are refused
  std::optional<float> missing{};         ///< number that stands for a missing value (-0 equals 0)
  Header header = Header::Auto;           ///< kind of the first line of a CSV file
};

/// Reads a table from where the last call stopped; keeps no more than the caller asks for.
class TableReader {
 public:
  virtual ~TableReader() = default;

  std::size_t columns() const { return columns_; }

  /// Returns the number of rows, if the file says it at its beginning.
  std::optional<std::size_t> rows() const { return rows_; }

  /// Returns a remark for the user on how the file is read; usually empty.
  const std::string& notice() const { return notice_; }

  /// Appends the values of up to `most` rows, row-major, in the model's order, NaN for a missing one. Returns
  /// the number of rows; fewer than `most` only at the end. An error in the file is reported when its place
  /// is reached.
  virtual Result<std::size_t> read(std::size_t most, std::vector<float>& values) = 0;

 protected:
  std::size_t columns_ = 0;
  std::optional<std::size_t> rows_;
  std::string notice_;
};

/// Returns the error for a number that is no float32 where the model asks for exact ones. `number` is its
/// text in the file.
Error not_exact(std::string place, const std::string& number);

/// Returns the error for a table whose number of columns is not the model's number of features.
Error wrong_width(std::size_t columns, std::size_t width);

}  // namespace forestvm::cli
