// Results that are too large for the caches: they are written past them, so that what is computed next stays in the
// caches, and the processor reads no memory that is written as a whole.
#pragma once

#include <cstddef>

namespace forestvm::host {

/// Returns whether a pass whose results take so many bytes writes them past the caches.
constexpr bool is_large_result(std::size_t bytes) { return bytes >= std::size_t{1} << 20; }

/// Copies bytes of a result; past the caches if it is large. A thread calls finish_result() before others may read
/// what it has copied.
void copy_result(const void* from, std::size_t bytes, void* to, bool is_large);
void finish_result(bool is_large);

}  // namespace forestvm::host
