// Compares the leaves of rows with those of a tile of kept rows: counts the trees in which they share a leaf, or adds
// up weights of these trees. Each CPU target compiles it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include <forestvm/core/platform.hpp>

namespace forestvm::host {

/// The number of kept rows in a tile.
inline constexpr unsigned kTileRows = 512;

/// The leaves of kTileRows kept rows. The codes of trees of one byte come first, then those of two and of four bytes; a
/// tree has kTileRows codes, one for each row.
struct SharedLeavesTask {
  const std::byte* tile;
  std::array<std::uint32_t, 3> trees;  ///< Number of trees whose codes have 1, 2 and 4 bytes.
  const std::byte* rows;  ///< Codes of the rows to compare, each in the order of the tile's trees.
  std::size_t row_bytes;  ///< Bytes from one row to the next.
  unsigned count;         ///< Number of rows.
  std::uint32_t* counts;  ///< Receives count x kTileRows numbers, unless `sums` is given.
  const double* weights;  ///< Weight of each tree, in the tile's order, for each row; or null.
  double* sums;           ///< Receives count x kTileRows sums of weights; or null.
};

using SharedLeavesFunction = void (*)(const SharedLeavesTask&);

template <class Code, unsigned Bytes>
struct CodeVector {
  typedef Code Type __attribute__((vector_size(Bytes)));
};

/// Returns `sums` plus 1 in the lanes in which `a` and `b` are equal.
template <class Vector>
FVM_INLINE Vector plus_equal(Vector sums, Vector a, Vector b) {
  if constexpr (sizeof(Vector) == 64)
    return a == b ? sums + 1 : sums;  // a comparison to a mask, and an addition under it
  else
    return sums - reinterpret_cast<Vector>(a == b);  // equal lanes are all ones, which is -1
}

/// Counts equal codes of `Rows` rows in vectors of `Bytes` bytes, as many at once as registers hold sums for: the
/// tile's codes are loaded once for all of these rows. The counts of a few trees are numbers of the codes' type.
template <class Code, unsigned Bytes, unsigned Rows>
FVM_INLINE void count_equal(const Code* tile, unsigned trees, const Code* const (&rows)[Rows],
                            std::uint32_t* const (&counts)[Rows]) {
  using Vector = typename CodeVector<Code, Bytes>::Type;
  constexpr unsigned kLanes = Bytes / sizeof(Code), kSums = 8 / Rows,
                     kVectors = kTileRows / kLanes < kSums ? kTileRows / kLanes : kSums;
  constexpr std::uint64_t kAtOnce = std::numeric_limits<Code>::max();
  for (unsigned begin = 0; begin < trees;) {
    const std::uint64_t left = trees - begin;
    const unsigned end = begin + static_cast<unsigned>(left < kAtOnce ? left : kAtOnce);
    for (unsigned first = 0; first < kTileRows; first += kVectors * kLanes) {
      Vector sums[Rows][kVectors] = {};
      for (unsigned t = begin; t < end; ++t)
        for (unsigned v = 0; v < kVectors; ++v) {
          Vector other;
          std::memcpy(&other, tile + std::size_t{t} * kTileRows + first + v * kLanes, sizeof other);
          for (unsigned r = 0; r < Rows; ++r)
            sums[r][v] = plus_equal(sums[r][v], other, Vector{} + rows[r][t]);
        }
      for (unsigned r = 0; r < Rows; ++r) {
        Code lanes[kVectors * kLanes];
        std::memcpy(lanes, sums[r], sizeof lanes);
        // GCC would repeat this loop and the next one, and write 6 kB that save no time.
#pragma GCC unroll 1
        for (unsigned i = 0; i < kVectors * kLanes; ++i) counts[r][first + i] += lanes[i];
      }
    }
    begin = end;
  }
}

/// Adds the weight of each tree to the sums of the rows with an equal code.
template <class Code>
FVM_INLINE void add_weights(const Code* tile, unsigned trees, const Code* row, const double* weights,
                            double* sums) {
  constexpr unsigned kAtOnce = 64;  // rows whose sums stay in registers, or in the first cache
  for (unsigned first = 0; first < kTileRows; first += kAtOnce) {
    double mine[kAtOnce];
    std::memcpy(mine, sums + first, sizeof mine);
    for (unsigned t = 0; t < trees; ++t) {
      const Code* const other = tile + std::size_t{t} * kTileRows + first;
      const Code code = row[t];
      const double weight = weights[t];
#pragma GCC unroll 1
      for (unsigned i = 0; i < kAtOnce; ++i) mine[i] += other[i] == code ? weight : 0;
    }
    std::memcpy(sums + first, mine, sizeof mine);
  }
}

template <class Target>
void compare_leaves(const SharedLeavesTask& task) {
  constexpr unsigned kBytes = Target::Codes::kLanes, kTogether = kBytes > 16 ? 2 : 1;
  const auto trees = task.trees;
  const std::size_t all = std::size_t{trees[0]} + trees[1] + trees[2];
  const std::byte* const twos = task.tile + std::size_t{trees[0]} * kTileRows;
  const std::byte* const fours = twos + std::size_t{trees[1]} * kTileRows * 2;
  const auto codes = [](const std::byte* at, auto code) {
    return static_cast<const decltype(code)*>(static_cast<const void*>(at));
  };
  const auto tile8 = codes(task.tile, std::uint8_t{});
  const auto tile16 = codes(twos, std::uint16_t{});
  const auto tile32 = codes(fours, std::uint32_t{});
  const unsigned together = task.sums == nullptr ? kTogether : 1;
  for (unsigned r = 0; r < task.count; r += together) {
    const std::uint32_t* row32[kTogether];
    const std::uint16_t* row16[kTogether];
    const std::uint8_t* row8[kTogether];
    std::uint32_t* counts[kTogether];
    std::uint32_t
        spare[kTogether == 1 ? 1 : kTileRows];  // counts of the row that a last row is compared beside
    for (unsigned i = 0; i < kTogether; ++i) {
      const bool exists = r + i < task.count;
      // Codes of four bytes come first in a row, so that all are aligned.
      const std::byte* const row = task.rows + (exists ? r + i : r) * task.row_bytes;
      row32[i] = codes(row, std::uint32_t{});
      row16[i] = codes(row + trees[2] * std::size_t{4}, std::uint16_t{});
      row8[i] = codes(row + trees[2] * std::size_t{4} + trees[1] * std::size_t{2}, std::uint8_t{});
      counts[i] = exists ? task.counts + std::size_t{r + i} * kTileRows : spare;
    }
    if (task.sums != nullptr) {
      const double* const weights = task.weights + r * all;
      double* const sums = task.sums + std::size_t{r} * kTileRows;
      for (unsigned i = 0; i < kTileRows; ++i) sums[i] = 0;
      add_weights<std::uint8_t>(tile8, trees[0], row8[0], weights, sums);
      add_weights<std::uint16_t>(tile16, trees[1], row16[0], weights + trees[0], sums);
      add_weights<std::uint32_t>(tile32, trees[2], row32[0], weights + trees[0] + trees[1], sums);
    } else {
      for (std::uint32_t* const mine : counts)
        for (unsigned i = 0; i < kTileRows; ++i) mine[i] = 0;
      count_equal<std::uint8_t, kBytes, kTogether>(tile8, trees[0], row8, counts);
      count_equal<std::uint16_t, kBytes, kTogether>(tile16, trees[1], row16, counts);
      count_equal<std::uint32_t, kBytes, kTogether>(tile32, trees[2], row32, counts);
    }
  }
}

}  // namespace forestvm::host
