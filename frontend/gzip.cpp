// Unpacks gzip with zlib. The output buffer grows with what was really unpacked, never with what a header
// claims.
#include <algorithm>

#include "file_bytes.hpp"
#include "inflate.hpp"

namespace forestvm::frontend {
namespace {

/// The step by which the output grows, so that memory which is not needed is not touched.
constexpr std::size_t kUnpackSize = std::size_t{1} << 18;

Error bad_gzip(std::size_t position, const std::string& what) {
  return refused("byte " + std::to_string(position) + " of the gzip file", what);
}

std::size_t output_limit(std::size_t input_size, std::size_t max_bytes, std::size_t max_expansion) {
  std::size_t product = 0;
  if (__builtin_mul_overflow(input_size, max_expansion, &product)) return max_bytes;
  return std::min(max_bytes, product);
}

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

std::vector<std::byte> peek_gzip(std::span<const std::byte> bytes, std::size_t size) {
  std::vector<std::byte> out(size);
  std::size_t made = 0;
  if (Inflater unpacker(bytes, Envelope::Gzip); unpacker.ready()) unpacker.unpack(out, made);
  out.resize(made);
  return out;
}

Result<std::vector<std::byte>> unpack_gzip(std::span<const std::byte> bytes, std::size_t max_bytes,
                                           std::size_t max_expansion) {
  Inflater unpacker(bytes, Envelope::Gzip);
  if (!unpacker.ready()) return Error{ErrorCode::Environment, "gzip", "zlib cannot start: out of memory"};
  const std::size_t limit = output_limit(bytes.size(), max_bytes, max_expansion);
  std::vector<std::byte> out;
  std::size_t size = 0;
  while (true) {
    // One byte beyond the limit tells "exactly at the limit" from "over it".
    if (size == out.size()) out.resize(std::min(limit + 1, size + kUnpackSize));
    std::size_t made = 0;
    const int code = unpacker.unpack(std::span(out).subspan(size), made);
    size += made;
    if (size > limit)
      return bad_gzip(unpacker.position(), "unpacks to more than " + std::to_string(limit) +
                                               " bytes, the limit for a file of this size");
    if (code == Z_STREAM_END) {
      if (unpacker.at_end()) break;
      if (!is_gzip(bytes.subspan(unpacker.position())))
        return bad_gzip(unpacker.position(), "other bytes follow the end of the gzip data");
      if (unpacker.next_member() != Z_OK) return bad_gzip(unpacker.position(), unpacker.complaint());
    } else if (code == Z_MEM_ERROR) {
      return Error{ErrorCode::Environment, "gzip", "zlib ran out of memory"};
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return bad_gzip(unpacker.position(), std::string("damaged gzip data: ") + unpacker.complaint());
    } else if (made == 0 && unpacker.at_end()) {
      return bad_gzip(unpacker.position(), "the gzip data ends too early");
    }
  }
  out.resize(size);
  return out;
}

}  // namespace forestvm::frontend
