// The banks of a GPU's shared memory, where the rows of a block lie in them, and what else lies there.
//
// Values of 32 rows and more lie feature by feature: a row is in one bank, whatever the features that lanes read. Fewer
// rows lie one after the other, so that threads copy 16 bytes of a row at once: lanes that share few rows walk
// different trees and read any banks, however rows lie.
//
// Rank codes lie column by column, four rows in a word. Rows in one word are 32 apart, so that the rows of a warp's
// lanes are in different banks, whatever the columns.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include <forestvm/core/platform.hpp>

namespace forestvm {

/// Number of banks, each 4 bytes wide: words of different banks are read at once.
inline constexpr std::uint32_t kBanks = 32;
/// Rows whose codes of a column fill a word of every bank.
inline constexpr std::uint32_t kRowsOfBanks = 4 * kBanks;

/// Returns the words that the codes of `rows` rows take in each column.
FVM_INLINE constexpr std::uint32_t staged_code_words(std::uint32_t rows) {
  return rows < kBanks ? rows : (rows + kRowsOfBanks - 1) / kRowsOfBanks * kBanks;
}

/// Where the values or codes of a block's rows lie in shared memory.
struct StagedPlaces {
  std::uint32_t stride;  ///< words from a feature or column to the next
  std::uint32_t pitch;   ///< words from a row to the next; 1 if rows lie feature by feature
  std::uint64_t words;   ///< words that all of them take
};

/// Returns the places of rows of `width` values, which `threads` threads copy. Where rows lie one after the other, they
/// begin at multiples of 16 bytes, and up to 8 of them have any one feature in different banks.
constexpr StagedPlaces staged_values(std::uint32_t rows, std::uint32_t width, std::uint32_t threads) {
  constexpr std::uint32_t kCopied = 4;  // words that a thread copies at once
  if (rows < kBanks && std::bit_ceil(rows) <= threads) {
    const std::uint32_t pitch = kCopied * ((width + kCopied - 1) / kCopied | 1);
    return {1, pitch, rows == 0 ? 0 : std::uint64_t{rows - 1} * pitch + width};
  }
  const std::uint32_t stride = rows < kBanks ? rows : (rows + kBanks - 1) / kBanks * kBanks;
  return {stride, 1, std::uint64_t{stride} * width};
}

constexpr StagedPlaces staged_codes(std::uint32_t rows, std::uint32_t columns) {
  const std::uint32_t stride = staged_code_words(rows);
  return {stride, 1, std::uint64_t{stride} * columns};
}

/// Returns the leaves of `leaf_bytes` bytes from where those that are kept of a row begin to where the next row's do.
/// Threads load 16 bytes of them at once, and those of up to 8 rows are in different banks.
constexpr std::uint64_t kept_leaves(std::uint64_t trees, std::uint64_t leaf_bytes) {
  const std::uint64_t loaded = 16 / leaf_bytes;
  return loaded * ((trees + loaded - 1) / loaded | 1);
}

/// Most bytes of a block's shared memory that the schedule `gpu` plans with. GPUs of compute capability 8.0, 9.0 and
/// 10.0 have this much.
inline constexpr std::uint32_t kPlannedShared = 160u << 10;

/// Bytes of a block's shared memory up to which accumulators lie there without a directive that asks for it: with more,
/// fewer blocks could run beside each other.
inline constexpr std::uint32_t kUnrequestedShared = 48u << 10;

/// Returns the bytes of a block's shared memory that accumulators may fill without a directive, where rows, trees and
/// sums take `taken` of them: the most of
/// - kUnrequestedShared,
/// - 17/16 of `taken`, because a sixteenth seldom changes how many blocks run beside each other,
/// - the part of `most` bytes that each of as many blocks has as registers allow to run beside each other. A block has
///   `threads` threads.
constexpr std::uint64_t unrequested_shared(std::uint64_t taken, std::uint64_t threads, std::uint64_t most) {
  constexpr std::uint64_t kThreads = 1024;  // of a multiprocessor, each with 64 registers
  const std::uint64_t beside = taken + taken / 16;
  const std::uint64_t part =
      std::min<std::uint64_t>(most, kPlannedShared) / (kThreads / std::min(threads, kThreads));
  return std::max({beside, part, std::uint64_t{kUnrequestedShared}});
}

/// Returns the number of the byte in its column where the code of a row lies.
FVM_INLINE constexpr std::uint32_t staged_code(std::uint32_t row) {
  const std::uint32_t of_banks = row % kRowsOfBanks;
  return row - of_banks + of_banks % kBanks * 4 + of_banks / kBanks;
}

}  // namespace forestvm
