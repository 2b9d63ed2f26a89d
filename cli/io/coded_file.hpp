// Writes and reads files of encoded rows (.fvr), forward and once, so that pipes work. A file has a header of 64 bytes;
// batches, each a record of 16 bytes and its codes, laid out as core/encoder.hpp describes; and a last record without
// rows, which has the total number of rows. Numbers are little-endian. Every byte is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/result.hpp>

#include "cli/io/output_file.hpp"
#include "cli/io/source.hpp"

namespace forestvm::cli {

/// The first bytes of a file: as in a program file, a byte above 127, a name, and line ends that a transfer in text
/// mode would change.
inline constexpr std::string_view kCodedMagic =
    "\x89"
    "FVR\r\n\x1a\n";

/// The most bytes of a batch: a larger number in a file is damaged. The widest possible block of codes fits.
inline constexpr std::size_t kMaxCodedBytes = std::size_t{256} << 20;

/// Memory for codes, aligned for the fastest reads.
class CodeMemory {
 public:
  /// Returns memory for at least `bytes` bytes, with the earlier content kept.
  std::uint8_t* resize(std::size_t bytes);
  std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(lines_.data()); }
  const std::uint8_t* data() const { return reinterpret_cast<const std::uint8_t*>(lines_.data()); }

 private:
  struct alignas(64) Line {
    std::uint8_t bytes[64];
  };
  std::vector<Line> lines_;
};

class CodedWriter {
 public:
  /// Begins a file for rows with `columns` codes each, encoded by the encoder with the number `encoder`. `path` may be
  /// any that OutputFile::open takes.
  static Result<CodedWriter> open(const std::string& path, std::size_t columns, std::uint64_t encoder);

  /// Writes a batch, or several if it has more than kMaxCodedBytes.
  Result<void> write(const CodedRows& rows);

  /// Ends the file; called after the last row.
  Result<void> finish();

 private:
  explicit CodedWriter(OutputFile file) : file_(std::move(file)) {}

  OutputFile file_;
  std::uint64_t rows_ = 0;
};

class CodedReader {
 public:
  /// Reads the header. Refuses, with the byte offset, a file that has another format, is damaged or is of a later
  /// version.
  static Result<CodedReader> open(Source source);

  /// Returns the next batch as it was written; no rows after the last. It is valid until the next call.
  /// Refuses, with the byte offset, a file that is damaged, ends too soon or goes on after its end.
  Result<CodedRows> next();

  /// Returns the number of bytes not yet read, if the file's size is known.
  std::optional<std::uint64_t> bytes_left() const { return source_->bytes_left(); }

 private:
  CodedReader() = default;
  Result<void> read(void* to, std::size_t count, const char* what);
  Result<void> read_codes(std::size_t count);

  std::unique_ptr<Source> source_;
  std::uint64_t at_ = 0;  // bytes read so far
  std::size_t columns_ = 0;
  std::uint64_t encoder_ = 0;
  std::uint64_t rows_ = 0;
  bool ended_ = false;
  CodeMemory codes_;
};

}  // namespace forestvm::cli
