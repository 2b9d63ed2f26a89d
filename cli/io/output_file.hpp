// Bytes out: standard output, or a file that appears under its name only when it is complete. Errors name the
// file.
#pragma once

#include <string>
#include <string_view>

#include <forestvm/result.hpp>

namespace forestvm::cli {

class OutputFile {
 public:
  /// Opens for writing; "-" is standard output. A regular file is written beside its place and renamed by
  /// finish(), so a failure leaves what was there before. A device or pipe is written directly.
  static Result<OutputFile> open(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  ///< without finish(): the unfinished file is removed

  Result<void> write(std::string_view bytes);

  /// Whether replace_start() can be called: not of a pipe.
  bool can_go_back() const { return !unfinished_.empty(); }

  /// Writes `bytes` over as many at the beginning, which were written before.
  Result<void> replace_start(std::string_view bytes);

  /// Writes what is buffered and gives the file its name.
  Result<void> finish();

 private:
  OutputFile() = default;
  Result<void> create_beside();
  Result<void> flush();

  Error cannot_write() const;

  std::string name_;  // as messages call it
  int file_ = -1;
  bool owned_ = false;
  std::string target_;      // where a regular file will be
  std::string unfinished_;  // where it is until then; empty when written directly
  std::string buffer_;
};

/// Writes all of it: open, write, finish.
Result<void> write_output(const std::string& path, std::string_view bytes);

}  // namespace forestvm::cli
