// Packs the codes of some of a pass's rows, so that walks take these rows alone. Each CPU target compiles it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <forestvm/core/encoder.hpp>

namespace forestvm::host {

/// Rows whose codes are packed, one block after the other. `to` may be `from`: no row is written before it is read.
struct PackTask {
  const std::uint8_t* from;
  const std::uint32_t* rows;  ///< Numbers of the rows, which ascend.
  std::uint32_t count;
  std::size_t columns;
  std::uint8_t* to;
};

using PackFunction = void (*)(const PackTask&);

/// Packs a block of `here` rows code by code.
template <class Target>
void pack_block(const PackTask& task, const std::uint32_t* rows, std::uint32_t here, std::uint8_t* block) {
  std::size_t offsets[kCodeRows];
  for (std::uint32_t i = 0; i < here; ++i) offsets[i] = code_offset(rows[i], task.columns);
  for (std::size_t c = 0; c < task.columns; ++c)
    for (std::uint32_t i = 0; i < here; ++i) block[c * kCodeRows + i] = task.from[offsets[i] + c * kCodeRows];
}

/// Packs a block of `here` rows from the blocks in which they lie, whose columns are vectors.
template <class Target>
void pack_vectors(const PackTask& task, const std::uint32_t* rows, std::uint32_t here, std::uint8_t* block) {
  using Codes = typename Target::Codes;
  static_assert(Codes::kLanes == kCodeRows);
  alignas(kCodeRows) std::uint8_t lanes[kCodeRows] = {};
  const std::uint8_t* from[kCodeRows];
  typename Codes::Mask masks[kCodeRows];
  std::uint32_t blocks = 0;
  for (std::uint32_t i = 0; i < here; ++i) lanes[i] = static_cast<std::uint8_t>(rows[i] % kCodeRows);
  for (std::uint32_t begin = 0, end = 0; begin < here; begin = end) {
    const std::uint32_t first = rows[begin] - lanes[begin];
    do ++end;
    while (end < here && rows[end] - first < kCodeRows);
    from[blocks] = task.from + code_offset(first, task.columns);
    masks[blocks++] = ~typename Codes::Mask{0} >> (kCodeRows - (end - begin)) << begin;
  }
  const auto index = Codes::load(lanes);
  for (std::size_t c = 0; c < task.columns * kCodeRows; c += kCodeRows) {
    auto codes = Codes::all(0);
    for (std::uint32_t b = 0; b < blocks; ++b)
      codes = Codes::permute_where(masks[b], codes, index, Codes::load(from[b] + c));
    Codes::store(block + c, codes);
  }
}

template <class Target>
void pack_codes(const PackTask& task) {
  for (std::uint32_t begin = 0; begin < task.count; begin += kCodeRows) {
    const std::uint32_t here = std::min<std::uint32_t>(task.count - begin, kCodeRows);
    std::uint8_t* const block = task.to + code_offset(begin, task.columns);
    if constexpr (Target::Codes::kLanes == kCodeRows)
      pack_vectors<Target>(task, task.rows + begin, here, block);
    else
      pack_block<Target>(task, task.rows + begin, here, block);
  }
}

}  // namespace forestvm::host
