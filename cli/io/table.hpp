// A table of rows as a file gives it, block after block, fitted to what a model expects: what the readers of
// CSV and NPY are.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::cli {

/// Whether the first line of a CSV file is a header. Auto: if it looks like one, see csv_reader.
enum class Header { Auto, Yes, No };

/// What a model expects of a row, and how the rows are to be read.
struct RowForm {
  std::size_t width = 0;
  std::vector<std::string_view> names{};  ///< empty, or `width` names
  bool exact = false;                     ///< numbers that are no float32 are refused
  std::optional<float> missing{};         ///< numbers equal to it (so -0 if it is 0) are missing
  Header header = Header::Auto;           ///< of CSV files
};

/// Reads on where it stopped; keeps no more than it is asked for.
class TableReader {
 public:
  virtual ~TableReader() = default;

  std::size_t columns() const { return columns_; }

  /// Where the file says it at its beginning.
  std::optional<std::size_t> rows() const { return rows_; }

  /// What the user should know of how the file is read; usually empty.
  const std::string& notice() const { return notice_; }

  /// Appends the values of up to `most` rows, row-major, in the model's order, NaN for a missing one. Result:
  /// the number of rows; fewer than `most` only at the end. What is wrong with the file is said when it is
  /// come to.
  virtual Result<std::size_t> read(std::size_t most, std::vector<float>& values) = 0;

 protected:
  std::size_t columns_ = 0;
  std::optional<std::size_t> rows_;
  std::string notice_;
};

/// A number, shown as in the file, that is no float32 where the model asks for exact ones.
Error not_exact(std::string place, const std::string& number);

/// A table that has not as many columns as the model has features.
Error wrong_width(std::size_t columns, std::size_t width);

}  // namespace forestvm::cli
