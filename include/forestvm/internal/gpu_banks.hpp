// The banks of a GPU's shared memory, where the rows of a block lie in them, and what else lies there.
//
// Values of 32 rows and more lie feature by feature: a row is in one bank, whatever the features that lanes read. Fewer
// rows lie one after the other, so that threads copy 16 bytes of a row at once: lanes that share few rows walk
// different trees and read any banks, however rows lie.
//
// Rank codes lie column by column, four rows in a word. Rows in one word are 32 apart, so that the rows of a warp's
// lanes are in different banks, whatever the columns.
#pragma once

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

/// Bytes of a block's shared memory up to which accumulators lie there without a directive that asks for it: with more,
/// fewer blocks could run beside each other.
inline constexpr std::uint32_t kUnrequestedShared = 48u << 10;

/// Returns the bytes of a block's shared memory that accumulators may fill without a directive, where rows, trees and
/// sums take `taken` of them: kUnrequestedShared, or 17/16 of `taken` if that is more. A sixteenth seldom changes how
/// many blocks run beside each other.
constexpr std::uint64_t unrequested_shared(std::uint64_t taken) {
  const std::uint64_t beside = taken + taken / 16;
  return beside > kUnrequestedShared ? beside : kUnrequestedShared;
}

/// Returns the number of the byte in its column where the code of a row lies.
FVM_INLINE constexpr std::uint32_t staged_code(std::uint32_t row) {
  const std::uint32_t of_banks = row % kRowsOfBanks;
  return row - of_banks + of_banks % kBanks * 4 + of_banks / kBanks;
}

}  // namespace forestvm
