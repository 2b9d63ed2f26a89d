// See forestvm/internal/inflate.hpp.
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/inflate.hpp>

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <string>

namespace forestvm {
namespace {

constexpr std::size_t kMaxPiece = std::numeric_limits<uInt>::max();

}  // namespace

struct Inflater::Stream {
  explicit Stream(Form of) : form(of) {
    constexpr int gzip_only = MAX_WBITS + 16, raw = -MAX_WBITS;
    ready = inflateInit2(&z, of == Form::Gzip ? gzip_only : raw) == Z_OK;
  }
  ~Stream() {
    if (ready) inflateEnd(&z);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Error bad(const std::string& what) const {
    return refused(
        formatted("byte {}{}", position, form == Form::Gzip ? " of the gzip file" : " of the packed data"),
        what);
  }
  Error damaged() const {
    return bad((form == Form::Gzip ? "damaged gzip data: " : "damaged data: ") +
               std::string(z.msg == nullptr ? "damaged data" : z.msg));
  }

  Form form;
  z_stream z{};
  std::uint64_t position = 0;
  bool ready = false;
  bool ended = false;  // True between members of a gzip file, and after the end of the data.
};

Inflater::Inflater(Form form) : stream_(std::make_unique<Stream>(form)) {}
Inflater::Inflater(Inflater&&) noexcept = default;
Inflater& Inflater::operator=(Inflater&&) noexcept = default;
Inflater::~Inflater() = default;

bool Inflater::is_complete() const { return stream_->ended; }

std::uint64_t Inflater::position() const { return stream_->position; }

Result<Inflater::Step> Inflater::unpack(std::span<const std::byte> input, std::span<std::byte> room) {
  Stream& s = *stream_;
  if (!s.ready) return fail(ErrorCode::Environment, "zlib cannot start: out of memory");
  if (s.ended) {
    if (input.empty()) return Step{};
    if (s.form == Form::Raw || input.front() != std::byte{0x1f})
      return s.bad(
          formatted("other bytes follow the end of the {} data", s.form == Form::Gzip ? "gzip" : "packed"));
    if (inflateReset(&s.z) != Z_OK) return s.damaged();
    s.ended = false;
  }
  const std::size_t given = std::min(kMaxPiece, input.size()), space = std::min(kMaxPiece, room.size());
  // zlib's next_in is not const in its C interface; inflate only reads it.
  s.z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(input.data()));
  s.z.avail_in = static_cast<uInt>(given);
  s.z.next_out = reinterpret_cast<Bytef*>(room.data());
  s.z.avail_out = static_cast<uInt>(space);
  const int code = inflate(&s.z, Z_NO_FLUSH);
  const Step step{given - s.z.avail_in, space - s.z.avail_out};
  s.position += step.taken;
  if (code == Z_MEM_ERROR) return fail(ErrorCode::Environment, "zlib ran out of memory");
  if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return s.damaged();
  s.ended = code == Z_STREAM_END;
  if (input.empty() && step.made == 0 && !room.empty() && !s.ended)
    return s.bad(formatted("the {} data ends too early", s.form == Form::Gzip ? "gzip" : "packed"));
  return step;
}

std::uint32_t crc32_of(std::uint32_t before, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace forestvm
