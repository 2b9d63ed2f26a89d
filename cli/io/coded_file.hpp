// Encoded rows as a file (.fvr), written and read forward once, so that pipes work too: a header of 64 bytes;
// batches, each a record of 16 bytes and its codes as core/encoder.hpp lays them out; a record of no rows,
// which says how many there were. Little-endian. Every byte is checked before anything is made of it.
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

/// As of program files: a byte above 127, a name, and line ends that a text-mode transfer would change.
inline constexpr std::string_view kCodedMagic =
    "\x89"
    "FVR\r\n\x1a\n";

/// A batch with more codes is no file of ours: what a damaged number may ask for. The widest block fits.
inline constexpr std::size_t kMostCodedBytes = std::size_t{256} << 20;

/// Memory for codes, aligned as they are read fastest.
class CodeMemory {
 public:
  /// At least so many bytes, keeping those that are there.
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
  /// For rows of this encoder; `path` as for OutputFile.
  static Result<CodedWriter> open(const std::string& path, std::size_t columns, std::uint64_t encoder);

  /// A batch, or several where it has more than kMostCodedBytes.
  Result<void> write(const CodedRows& rows);

  /// After the last row.
  Result<void> finish();

 private:
  explicit CodedWriter(OutputFile file) : file_(std::move(file)) {}

  OutputFile file_;
  std::uint64_t rows_ = 0;
};

class CodedReader {
 public:
  /// Whether what begins so holds encoded rows, whole or damaged.
  static bool is_coded(std::string_view start) { return start.starts_with(kCodedMagic); }

  /// Takes the header. Refused, with the byte, where the file is none of ours, damaged or of a later version.
  static Result<CodedReader> open(Source source);

  /// The next batch, as it was written; no rows after the last. Good until the next call. Refused, with the
  /// byte, where the file is damaged, ends too soon or goes on after its end.
  Result<CodedRows> next();

  /// Of the file, where its size is known.
  std::optional<std::uint64_t> bytes_left() const { return source_->bytes_left(); }

 private:
  CodedReader() = default;
  Result<void> read(void* to, std::size_t count, const char* what);
  Result<void> read_codes(std::size_t count);

  std::unique_ptr<Source> source_;
  std::uint64_t at_ = 0;  // bytes taken
  std::size_t columns_ = 0;
  std::uint64_t encoder_ = 0;
  std::uint64_t rows_ = 0;
  bool ended_ = false;
  CodeMemory codes_;
};

}  // namespace forestvm::cli
