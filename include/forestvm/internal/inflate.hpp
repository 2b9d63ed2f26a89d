// Unpacks gzip and deflate piece by piece, with zlib. Implemented by frontend, the only home of zlib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <forestvm/result.hpp>

namespace forestvm {

/// The step by which what is unpacked grows, so that memory that is not needed, or that a damaged size asks for, is not
/// touched.
inline constexpr std::size_t kUnpackSize = std::size_t{1} << 18;

/// A stream of packed bytes that are given and unpacked in pieces of any size. Memory does not depend on the stream.
class Inflater {
 public:
  /// Gzip: one or more members of a gzip file (RFC 1952). Raw: deflate data without a header (RFC 1951), as in zip
  /// archives.
  enum class Form { Gzip, Raw };
  explicit Inflater(Form form);
  Inflater(Inflater&&) noexcept;
  Inflater& operator=(Inflater&&) noexcept;
  ~Inflater();

  /// The bytes of the input that a step took, and of the room that it filled.
  struct Step {
    std::size_t taken = 0;
    std::size_t made = 0;
  };

  /// Takes some of `input` and fills some of `room`. An empty `input` says that the stream ends: what is left in
  /// zlib's memory still comes, and a stream that is cut short is refused. Refuses damaged bytes, and bytes that
  /// follow the end of the stream, with the number of the byte. Writes nothing only if it needs more input, or at
  /// the end.
  Result<Step> unpack(std::span<const std::byte> input, std::span<std::byte> room);

  /// Returns whether the stream may end here: no member is incomplete.
  bool is_complete() const;

  /// Returns the number of bytes taken so far.
  std::uint64_t position() const;

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

/// Returns the CRC-32 of a stream that continues with `bytes`. `before` is the CRC-32 of what came before them, 0
/// at the start.
std::uint32_t crc32_of(std::uint32_t before, std::span<const std::byte> bytes);

}  // namespace forestvm
