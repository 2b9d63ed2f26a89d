// Reads input from a file, standard input, a string or an unpacked stream, forward and once. The readers of rows use
// it, so that a pipe works wherever a file does and only what has arrived takes memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <forestvm/result.hpp>

namespace forestvm::cli {

/// The bytes with which UTF-8 texts of Windows programs begin.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Returns the bytes of a text.
inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// A regular file that can be read at any offset.
struct FilePart {
  int file;             ///< descriptor
  std::uint64_t begin;  ///< where the part begins
  std::uint64_t size;
};

/// Gives a Source its bytes.
class Feed {
 public:
  virtual ~Feed() = default;

  /// Copies up to `count` bytes to `to` and returns their number; 0 only at the end.
  virtual Result<std::size_t> read(char* to, std::size_t count) = 0;

  /// Returns the number of bytes not yet read, if it is known.
  virtual std::optional<std::uint64_t> bytes_left() const = 0;

  /// Returns everything that this feed reads, from its first byte on, if that is a part of a regular file.
  virtual std::optional<FilePart> file() const { return std::nullopt; }
};

class Source {
 public:
  /// Opens `path`; "-" is standard input. Returns an Environment error if that fails.
  static Result<Source> open(const std::string& path);
  static Source from_text(std::string text);
  explicit Source(std::unique_ptr<Feed> feed) : feed_(std::move(feed)) {}

  /// Returns what has been read but not taken: at least `count` bytes, unless the input ends before. Valid until the
  /// next call of a member.
  Result<std::string_view> peek(std::size_t count);

  /// Returns whether the next bytes are these. Reads no more bytes than it needs to tell.
  Result<bool> starts_with(std::string_view bytes);

  /// Takes `count` bytes, which the last peek returned.
  void skip(std::size_t count) { begin_ += count; }

  /// Takes up to `count` bytes into `to` and returns their number; fewer only at the end of the input.
  Result<std::size_t> read(char* to, std::size_t count);

  /// Takes everything up to the end. Refuses more than `limit` bytes.
  Result<std::string> read_rest(std::size_t limit);

  /// Returns the number of bytes not yet taken, if the input's size is known (a regular file, a string).
  std::optional<std::uint64_t> bytes_left() const;

  /// Returns the whole input, including what was taken, if it is a regular file.
  std::optional<FilePart> file() const { return feed_ ? feed_->file() : std::nullopt; }

 private:
  Source() = default;
  std::size_t buffered() const { return buffer_.size() - begin_; }
  Result<std::size_t> read_some(char* to, std::size_t count);
  Result<void> fetch();

  std::unique_ptr<Feed> feed_;  // null: the buffer holds the whole input
  bool ended_ = false;
  std::string buffer_;
  std::size_t begin_ = 0;  // the first byte of buffer_ that has not been taken
};

}  // namespace forestvm::cli
