// Unpacks gzip. The output buffer grows with what has been unpacked, never with what a header claims.
#include <algorithm>
#include <string>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/inflate.hpp>

#include "frontend/file_bytes.hpp"

namespace forestvm::frontend {
namespace {

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
  Inflater inflater(Inflater::Form::Gzip);
  const auto step = inflater.unpack(bytes, out);
  out.resize(step ? step->made : 0);
  return out;
}

Result<std::vector<std::byte>> unpack_gzip(std::span<const std::byte> bytes, std::size_t max_bytes,
                                           std::size_t max_expansion) {
  Inflater inflater(Inflater::Form::Gzip);
  const std::size_t limit = output_limit(bytes.size(), max_bytes, max_expansion);
  std::span<const std::byte> rest = bytes;
  std::vector<std::byte> out;
  std::size_t size = 0;
  while (!rest.empty() || !inflater.is_complete()) {
    // Makes room for one byte beyond the limit, which only data over the limit fills.
    if (size == out.size()) out.resize(std::min(limit + 1, size + kUnpackSize));
    FVM_ASSIGN(const Inflater::Step step, inflater.unpack(rest, std::span(out).subspan(size)));
    rest = rest.subspan(step.taken);
    size += step.made;
    if (size > limit)
      return refused(formatted("byte {} of the gzip file", inflater.position()),
                     "unpacks to more than {} bytes, the limit for a file of this size", limit);
  }
  out.resize(size);
  return out;
}

}  // namespace forestvm::frontend
