// The checksums of files. xxHash is inlined here, once.
#define XXH_INLINE_ALL  // otherwise a library must be linked, which allocates states
#include <xxhash.h>

#include <cstring>

#include <forestvm/internal/program_tools.hpp>
#include <forestvm/program.hpp>

#include "vm/program/format.hpp"

namespace forestvm {

std::uint64_t bytecode::checksum(std::span<const std::byte> image) {
  FileHeader header;
  std::memcpy(&header, image.data(), sizeof header);
  header.checksum = 0;
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, &header, sizeof header);
  XXH3_64bits_update(&state, image.data() + sizeof header, image.size() - sizeof header);
  return XXH3_64bits_digest(&state);
}

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace forestvm
