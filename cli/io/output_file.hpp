// Bytes out: standard output, or a file that appears under its name only when it is complete. Errors name the
// file.
#pragma once

#include <string>
#include <string_view>

#include <forestvm/result.hpp>

#include "cli/io/unfinished.hpp"

namespace forestvm::cli {

class OutputFile {
 public:
  /// Opens for writing; "-" is standard output. A regular file is written beside its place and renamed by
  /// finish(), so a failure, or a signal, leaves what was there before, and nothing else. It keeps the
  /// permissions of the file that it replaces, but not the set-user-ID, set-group-ID and sticky bits. A
  /// device or pipe is written directly.
  static Result<OutputFile> open(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  ///< without finish(): the unfinished file is removed

  Result<void> write(std::string_view bytes);

  /// Whether replace_start() can be called: not of a pipe.
  bool can_go_back() const { return unfinished_.exists(); }

  /// Writes `bytes` over as many at the beginning, which were written before.
  Result<void> replace_start(std::string_view bytes);

  /// Writes what is buffered, waits until the disk has it, and gives the file its name.
  Result<void> finish();

 private:
  OutputFile() = default;
  Result<void> create_beside();
  Result<void> write_through(std::string_view bytes);
  Result<void> flush();

  Error cannot_write() const;

  std::string name_;  // as messages call it
  int file_ = -1;
  bool owned_ = false;
  std::string target_;     // where a regular file will be
  Unfinished unfinished_;  // where it is until then; none when written directly
  std::string buffer_;
};

/// Writes all of it: open, write, finish.
Result<void> write_output(const std::string& path, std::string_view bytes);

}  // namespace forestvm::cli
