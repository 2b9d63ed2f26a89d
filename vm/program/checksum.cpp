// The checksums of files. xxHash is inlined here, once.
#define XXH_INLINE_ALL  // otherwise a library must be linked, which allocates states
#include <xxhash.h>

#include <cstring>

#include <forestvm/internal/program_tools.hpp>
#include <forestvm/program.hpp>

#include "vm/program/format.hpp"

namespace forestvm {

namespace {

/// Returns the checksum of two parts as if they were one. All checksums are computed in one way, which has a good deal
/// of code.
[[gnu::noinline]] std::uint64_t hash(std::span<const std::byte> first, std::span<const std::byte> second,
                                     std::uint64_t seed) {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset_withSeed(&state, seed);
  XXH3_64bits_update(&state, first.data(), first.size());
  XXH3_64bits_update(&state, second.data(), second.size());
  return XXH3_64bits_digest(&state);
}

}  // namespace

std::uint64_t bytecode::checksum(std::span<const std::byte> image) {
  FileHeader header;
  std::memcpy(&header, image.data(), sizeof header);
  header.checksum = 0;
  return hash(std::as_bytes(std::span(&header, 1)), image.subspan(sizeof header), 0);
}

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) { return hash(bytes, {}, seed); }

}  // namespace forestvm
