// Writes predictions that are mostly zeros as a CSR matrix in an .npz archive, as scipy.sparse.save_npz does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <forestvm/result.hpp>

#include "cli/io/output_file.hpp"

namespace forestvm::cli {

/// Returns whether a file of this name is an .npz archive.
bool is_npz_name(const std::string& path);

/// A vector that is kept in a temporary file until its length is known, and then written to an archive.
class SpooledArray {
 public:
  /// Makes an empty vector of numbers of a NumPy type such as "<i8", whose size in bytes is `size`.
  static Result<SpooledArray> make(const char* name, const char* dtype, std::size_t size);

  Result<void> add(const void* number);
  std::uint64_t bytes() const { return count_ * size_; }
  /// Writes the vector as a file of an archive that is `written` bytes long, and appends its record to `directory`.
  Result<void> write(OutputFile& file, std::uint64_t& written, std::string& directory);

 private:
  SpooledArray(const char* name, const char* dtype, std::size_t size, std::FILE* file)
      : name_(name), dtype_(dtype), size_(size), file_(file, &std::fclose) {}

  const char* name_;
  const char* dtype_;
  std::size_t size_;
  std::uint64_t count_ = 0;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

class SparseWriter {
 public:
  /// Opens the output. Rows have `columns` columns, their values are float64 or float32.
  static Result<SparseWriter> open(const std::string& path, std::uint64_t columns, bool wide);

  /// Adds a number other than zero to the row that end_row() ends next. Columns of a row ascend.
  Result<void> add(std::uint64_t column, double value);
  /// Ends a row. Refuses more than 4 GiB, which ZIP archives without extensions cannot hold.
  Result<void> end_row();
  /// Completes the output.
  Result<void> finish();

 private:
  SparseWriter(std::string path, OutputFile file, std::uint64_t columns, bool wide, SpooledArray values,
               SpooledArray indices, SpooledArray ends)
      : path_(std::move(path)),
        file_(std::move(file)),
        columns_(columns),
        wide_(wide),
        values_(std::move(values)),
        indices_(std::move(indices)),
        ends_(std::move(ends)) {}

  std::string path_;
  OutputFile file_;
  std::uint64_t columns_;
  bool wide_;
  SpooledArray values_, indices_, ends_;
  std::int64_t count_ = 0;  ///< Numbers of all rows.
  std::int64_t rows_ = 0;
};

}  // namespace forestvm::cli
