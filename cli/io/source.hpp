// Input from a file, standard input or a string, read forward once. The readers of rows build on it, so that
// a pipe works wherever a file does and only what has arrived takes memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <forestvm/result.hpp>

namespace forestvm::cli {

class Source {
 public:
  /// Opens `path`; "-" is standard input. Returns an Environment error if that fails.
  static Result<Source> open(const std::string& path);
  static Source from_text(std::string text);

  Source(Source&& other) noexcept;
  Source& operator=(Source&&) = delete;
  ~Source();

  /// Returns everything read but not taken: at least `count` bytes unless the input ends before. Valid until
  /// the next call of a member.
  Result<std::string_view> peek(std::size_t count);

  /// Takes `count` bytes, which the last peek returned.
  void skip(std::size_t count) { begin_ += count; }

  /// Takes up to `count` bytes into `to` and returns their number; fewer only at the end of the input.
  Result<std::size_t> read(char* to, std::size_t count);

  /// Takes everything up to the end. Refuses more than `limit` bytes.
  Result<std::string> read_rest(std::size_t limit);

  /// Returns the number of bytes not yet taken, if the input's size is known (a regular file, a string).
  std::optional<std::uint64_t> bytes_left() const;

 private:
  Source() = default;
  std::size_t buffered() const { return buffer_.size() - begin_; }
  Result<std::size_t> read_some(char* to, std::size_t count);
  Result<void> fetch();

  int file_ = -1;       // -1: the buffer holds the whole input
  bool owned_ = false;  // standard input is not closed
  bool ended_ = false;
  std::string buffer_;
  std::size_t begin_ = 0;              // the first byte of buffer_ that has not been taken
  std::uint64_t fetched_ = 0;          // bytes read from file_
  std::optional<std::uint64_t> size_;  // size of file_ from where it stood when opened
};

}  // namespace forestvm::cli
