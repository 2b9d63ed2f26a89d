// The banks of a GPU's shared memory, and where the rank codes of a block's rows lie in them: column by column, four
// rows in a word. Rows in one word are 32 apart, so that the rows of a warp's lanes are in different banks, whatever
// the columns.
#pragma once

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

/// Returns the number of the byte in its column where the code of a row lies.
FVM_INLINE constexpr std::uint32_t staged_code(std::uint32_t row) {
  const std::uint32_t of_banks = row % kRowsOfBanks;
  return row - of_banks + of_banks % kBanks * 4 + of_banks / kBanks;
}

}  // namespace forestvm
