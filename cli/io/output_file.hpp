// Output to standard output, or to a file that appears under its name only when it is complete. Errors name
// the file.
#pragma once

#include <string>
#include <string_view>

#include <forestvm/result.hpp>

#include "cli/io/unfinished.hpp"

namespace forestvm::cli {

class OutputFile {
 public:
  /// Opens for writing; "-" is standard output. A regular file is written beside its path and renamed by finish(), so
  /// that a failure or a signal leaves the earlier file unchanged and leaves no other file behind. A link stays a link:
  /// the file that it names is replaced, or made. The new file keeps the permissions of the one that it replaces,
  /// without the set-user-ID, set-group-ID and sticky bits. A device or pipe is written directly.
  static Result<OutputFile> open(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  /// Removes the unfinished file, unless finish() was called.
  ~OutputFile();

  Result<void> write(std::string_view bytes);

  /// Returns whether replace_start() can be called, which pipes do not allow.
  bool can_go_back() const { return unfinished_.exists(); }

  /// Overwrites the first bytes.size() bytes of the file, which must have been written before.
  Result<void> replace_start(std::string_view bytes);

  /// Writes what is buffered, so that the reader of a pipe sees it.
  Result<void> flush();

  /// Writes what is buffered, waits until it is on disk, and gives the file its name.
  Result<void> finish();

 private:
  OutputFile() = default;
  Result<void> create_beside();
  Result<void> write_through(std::string_view bytes);

  Error cannot_write() const;

  std::string name_;  // for messages
  int file_ = -1;
  bool owned_ = false;
  std::string target_;     // the regular file's final path
  Unfinished unfinished_;  // the path until finish(); none if the file is written directly
  std::string buffer_;
};

/// Opens the output, writes all bytes, and finishes it.
Result<void> write_output(const std::string& path, std::string_view bytes);

}  // namespace forestvm::cli
