// Unpacks gzip with zlib. The output buffer grows with what was really unpacked, never with what a header
// claims.
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "file_bytes.hpp"

namespace forestvm::frontend {
namespace {

/// The step by which the output grows, so that memory which is not needed is not touched.
constexpr std::size_t kUnpackSize = std::size_t{1} << 18;

/// An inflate stream and its position in the input.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> input) : input_(input) {
    constexpr int gzip_only = 15 + 16;
    ready_ = inflateInit2(&stream_, gzip_only) == Z_OK;
  }
  ~Unpacker() {
    if (ready_) inflateEnd(&stream_);
  }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  bool ready() const { return ready_; }
  std::size_t position() const { return position_; }
  bool at_end() const { return position_ == input_.size(); }
  const char* complaint() const { return stream_.msg == nullptr ? "damaged data" : stream_.msg; }
  int next_member() { return inflateReset(&stream_); }

  /// Unpacks into `room`; sets `made` to the number of bytes that were filled.
  int unpack(std::span<std::byte> room, std::size_t& made) {
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    const std::size_t given = std::min(most, input_.size() - position_);
    // zlib's next_in is not const in its C interface; inflate only reads it.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(input_.data() + position_));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    const std::size_t space = std::min(most, room.size());
    stream_.avail_out = static_cast<uInt>(space);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    position_ += given - stream_.avail_in;
    made = space - stream_.avail_out;
    return code;
  }

 private:
  std::span<const std::byte> input_;
  z_stream stream_{};
  std::size_t position_ = 0;
  bool ready_ = false;
};

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
  if (Unpacker unpacker(bytes); unpacker.ready()) unpacker.unpack(out, made);
  out.resize(made);
  return out;
}

Result<std::vector<std::byte>> unpack_gzip(std::span<const std::byte> bytes, std::size_t max_bytes,
                                           std::size_t max_expansion) {
  Unpacker unpacker(bytes);
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
