// A stream of zlib's inflate over bytes in memory. In: packed bytes. Out: unpacked bytes, as far as the caller's room
// goes.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace forestvm::frontend {

/// The envelopes of deflated data, by zlib's numbers for them.
enum class Envelope : int { Gzip = 15 + 16, None = -15 };

/// An inflate stream and its position in the input.
class Inflater {
 public:
  Inflater(std::span<const std::byte> input, Envelope envelope) : input_(input) {
    ready_ = inflateInit2(&stream_, static_cast<int>(envelope)) == Z_OK;
  }
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

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

}  // namespace forestvm::frontend
