// Adds vectors of leaves to sums. In: a program's leaf_vectors section, and the numbers of vectors that walks kept for
// every tree. Shared by host and device code.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/platform.hpp>

namespace forestvm {

/// The most vectors of a program: float32 holds their numbers exactly.
inline constexpr std::size_t kMaxLeafVectors = std::size_t{1} << 24;

/// The vectors of a program's leaves.
struct LeafVectors {
  const void* numbers;  ///< count x width numbers of the scores' type
  std::uint32_t count;  ///< Number of vectors; 0 if the program's leaves are not vectors.
  std::uint32_t width;  ///< The program's outputs.
};

/// Returns the vector with this number. A number that no vector has, which occurs only in a damaged program, gives
/// the first vector.
template <class Score>
FVM_INLINE const Score* leaf_vector(const LeafVectors& vectors, Score number) {
  const bool exists = number >= 0 && number < static_cast<Score>(vectors.count);
  const std::size_t index = exists ? static_cast<std::size_t>(number) : 0;
  return static_cast<const Score*>(vectors.numbers) + index * vectors.width;
}

}  // namespace forestvm
