// Counts the leaves that rows share with a tile of kept rows, from sets: one for each leaf of a tree, with a bit for
// each kept row of the tile. A row adds up the sets of its leaves bit by bit, in planes: bit i of plane p is bit p of
// the count of kept row i. Adders of three bits let each instruction add the bits of a whole vector. Each CPU target
// compiles it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <forestvm/core/platform.hpp>

#include "vm/host/shared_leaves.hpp"
#include "vm/host/simd/stream.hpp"

namespace forestvm::host {

inline constexpr unsigned kSetBytes = kTileRows / 8;  ///< The bytes of a set: bit i of byte j is row 8 j + i.
inline constexpr unsigned kSetsAtOnce = 16;           ///< The least sets that a row adds together.

/// Some trees of some rows.
struct LeafSetsTask {
  const std::byte* sets;         ///< The sets of the trees' leaves.
  const std::uint16_t* numbers;  ///< Numbers of the sets of each row's leaves, row after row.
  unsigned trees;                ///< Numbers of a row, a multiple of kSetsAtOnce.
  std::size_t rows;
  std::byte* planes;  ///< The planes of each row's counts, kSetBytes each.
  /// Bytes from one row's planes to the next; 0 if rows use the same planes, one after the other.
  std::size_t row_planes;
  unsigned plane_count;    ///< As many as the numbers of all trees so far have bits.
  unsigned planes_before;  ///< Planes that earlier trees have written; the others begin with zeros.
  std::int32_t* counts;    ///< Receives `columns` numbers for each row after its last tree; null before.
  std::size_t row_counts;  ///< Numbers from one row to the next.
  unsigned columns;        ///< At most kTileRows.
  std::int32_t* copies;    ///< Receives kTileRows counts for each row, too, for who reads them next; or null.
  bool streams;            ///< Whether counts go to memory past the caches, which they would fill.
};

using LeafSetsFunction = void (*)(const LeafSetsTask&);

/// Adds 2^Level sets to the planes below Level. Returns the carries, each of which is worth 2^Level.
template <class Codes, unsigned Level>
FVM_INLINE typename Codes::Bytes add_sets(const std::uint8_t* sets, const std::uint16_t* numbers,
                                          typename Codes::Bytes* planes) {
  if constexpr (Level == 0) {
    return Codes::load(sets + std::size_t{*numbers} * kSetBytes);
  } else {
    const auto a = add_sets<Codes, Level - 1>(sets, numbers, planes);
    const auto b = add_sets<Codes, Level - 1>(sets, numbers + (1U << (Level - 1)), planes);
    const auto c = planes[Level - 1];
    planes[Level - 1] = a ^ b ^ c;
    return Codes::majority(a, b, c);
  }
}

/// Adds sets to all planes: 2^Level at a time as long as there are so many. Planes below Level are in `low`, all others
/// in memory, kSetBytes apart.
template <class Codes, unsigned Level>
FVM_INLINE unsigned add_all_sets(const std::uint8_t* sets, const std::uint16_t* numbers, unsigned begin,
                                 unsigned end, typename Codes::Bytes* low, std::uint8_t* planes,
                                 unsigned plane_count) {
  for (; end - begin >= 1U << Level; begin += 1U << Level) {
    auto carry = add_sets<Codes, Level>(sets, numbers + begin, low);
    for (std::size_t p = Level; p < plane_count; ++p) {
      const auto plane = Codes::load(planes + p * kSetBytes);
      Codes::store(planes + p * kSetBytes, plane ^ carry);
      carry = plane & carry;
    }
  }
  return begin;
}

/// Writes the numbers whose bits are in planes.
template <class Codes>
FVM_INLINE void write_counts(const std::uint8_t* planes, unsigned plane_count, std::int32_t* to,
                             unsigned columns, bool streams, std::int32_t* copy) {
  std::uint32_t counts[kTileRows];
  for (unsigned first = 0; first < plane_count; first += 8) {
    const unsigned end = plane_count - first < 8 ? plane_count - first : 8;
    std::uint8_t bytes[kTileRows];
    for (unsigned i = 0; i < kTileRows; i += Codes::kLanes) {
      auto sums = Codes::all(0);
      for (unsigned p = 0; p < end; ++p)
        sums = Codes::add_where(planes + std::size_t{first + p} * kSetBytes + i / 8, sums,
                                static_cast<std::uint8_t>(1U << p));
      Codes::store(bytes + i, sums);
    }
    if (first == 0)
      for (unsigned i = 0; i < kTileRows; ++i) counts[i] = bytes[i];
    else
      for (unsigned i = 0; i < kTileRows; ++i) counts[i] |= std::uint32_t{bytes[i]} << first;
  }
  if (copy != nullptr) std::memcpy(copy, counts, sizeof counts);
  if (streams)
    stream<Codes>(reinterpret_cast<std::uint32_t*>(to), counts, columns);
  else
    std::memcpy(to, counts, columns * sizeof *to);
}

template <class Target>
void count_leaf_sets(const LeafSetsTask& task) {
  using Codes = typename Target::Codes;
  using Bytes = typename Codes::Bytes;
  constexpr unsigned kLevels = 5;  // the planes of 32 sets; the last sets can be 16
  const auto* const sets = reinterpret_cast<const std::uint8_t*>(task.sets);
  for (std::size_t r = 0; r < task.rows; ++r) {
    const std::uint16_t* const numbers = task.numbers + r * task.trees;
    auto* const planes = reinterpret_cast<std::uint8_t*>(task.planes + r * task.row_planes);
    std::memset(planes + std::size_t{task.planes_before} * kSetBytes, 0,
                std::size_t{task.plane_count - task.planes_before} * kSetBytes);
    for (unsigned part = 0; part < kSetBytes; part += Codes::kLanes) {
      std::uint8_t* const mine = planes + part;
      Bytes low[kLevels];
      for (std::size_t p = 0; p < kLevels; ++p) low[p] = Codes::load(mine + p * kSetBytes);
      const unsigned done =
          add_all_sets<Codes, kLevels>(sets + part, numbers, 0, task.trees, low, mine, task.plane_count);
      for (std::size_t p = 0; p < kLevels; ++p) Codes::store(mine + p * kSetBytes, low[p]);
      add_all_sets<Codes, kLevels - 1>(sets + part, numbers, done, task.trees, low, mine, task.plane_count);
      for (std::size_t p = 0; p < kLevels - 1; ++p) Codes::store(mine + p * kSetBytes, low[p]);
    }
    if (task.counts != nullptr)
      write_counts<Codes>(planes, task.plane_count, task.counts + r * task.row_counts, task.columns,
                          task.streams, task.copies == nullptr ? nullptr : task.copies + r * kTileRows);
  }
  if (task.streams) Codes::finish_streams();
}

}  // namespace forestvm::host
