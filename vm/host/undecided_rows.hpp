// The rows of a pass whose prediction may stop early (see EarlyStop). The trees of a call are walked in chunks. After a
// chunk, rows that need no more trees keep their sums, and once they are at least an eighth of the rows, the codes or
// values of the others are packed, so that the walks of the next chunks take these alone.
// In: a pass, and memory for it. Out: the sums of all of its rows, and the pass of the next chunk.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vm/host/machine.hpp"

namespace forestvm::host {

class UndecidedRows {
 public:
  /// Returns the bytes of memory for `rows` rows with `outputs` scores each. Packed rows take `columns` codes and
  /// `values` float32 numbers.
  static std::size_t bytes(std::size_t rows, std::size_t outputs, std::size_t columns, std::size_t values);

  /// `pass` is the first chunk, `rule` the program's. `columns` and `values` are 0 if its walks read no codes, or no
  /// values.
  UndecidedRows(const Pass& pass, const Target& target, EarlyStopRule rule, std::size_t outputs,
                std::size_t columns, std::size_t values, std::byte* memory);

  /// Returns the sums of the chunk's rows.
  UndecidedSums& sums() { return sums_; }

  /// Returns whether rows of the chunk that has been interpreted are undecided, and makes `pass` the pass of their
  /// next chunk: it may then have fewer rows. Rows that are decided are not packed if `packs` is false.
  bool next(Pass& pass, bool packs);

  /// Returns the sums of all rows. The chunks must have ended.
  UndecidedSums& finish();

 private:
  void pack(Pass& pass, std::uint32_t left);

  const Target& target_;
  std::size_t outputs_, columns_, values_;
  std::uint32_t rows_;      ///< Rows of the chunk.
  double* all_;             ///< The sums of all rows that are no longer part of the chunk.
  std::uint32_t* numbers_;  ///< For each row of the chunk, its number in the first chunk.
  std::uint32_t* kept_;     ///< For each row of the next chunk, its number in this one.
  std::uint8_t* packed_codes_;
  float* packed_values_;
  UndecidedSums sums_{};
};

}  // namespace forestvm::host
