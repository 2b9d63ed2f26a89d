// See large_results.hpp.
#include "vm/host/large_results.hpp"

#include <cstring>

#include "vm/host/simd/stream.hpp"

namespace forestvm::host {

void copy_result(const void* from, std::size_t bytes, void* to, bool is_large) {
  if (is_large)
    stream<Stream16>(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  else
    std::memcpy(to, from, bytes);
}

void finish_result(bool is_large) {
  if (is_large) Stream16::finish_streams();
}

}  // namespace forestvm::host
