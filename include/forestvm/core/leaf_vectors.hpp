// Adds vectors of leaves to sums. In: a program's leaf_vectors section, and the numbers of vectors that walks kept for
// every tree. Shared by host and device code.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/platform.hpp>

namespace forestvm {

/// The most vectors of a program: their numbers are exact in float32.
inline constexpr std::size_t kMaxLeafVectors = std::size_t{1} << 24;

/// The vectors of a program's leaves.
struct LeafVectors {
  const void* numbers;  ///< count x width numbers of the scores' type
  std::uint32_t count;  ///< 0 if the program's leaves are no vectors.
  std::uint32_t width;  ///< The program's outputs.
};

/// Returns the vector with this number. Other numbers than those of vectors, which only a damaged program has, stand for
/// the first.
template <class Score>
FVM_INLINE const Score* leaf_vector(const LeafVectors& vectors, Score number) {
  const bool exists = number >= 0 && number < static_cast<Score>(vectors.count);
  const std::size_t index = exists ? static_cast<std::size_t>(number) : 0;
  return static_cast<const Score*>(vectors.numbers) + index * vectors.width;
}

/// Adds a vector to a row's sums.
template <class Score>
FVM_INLINE void add_vector(Score* sums, const Score* vector, std::uint32_t width) {
  for (std::uint32_t k = 0; k < width; ++k) sums[k] += vector[k];
}

}  // namespace forestvm
