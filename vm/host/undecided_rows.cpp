// See undecided_rows.hpp.
#include "vm/host/undecided_rows.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <forestvm/core/encoder.hpp>

#include "vm/host/lines.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm::host {
namespace {

/// Returns the most undecided rows of a chunk of `rows` that are packed.
constexpr std::size_t packed_rows(std::size_t rows) { return rows * 3 / 4; }

std::size_t packed_code_bytes(std::size_t rows, std::size_t columns) {
  return columns == 0 ? 0 : code_bytes(packed_rows(rows), columns) + kCodeSlack;
}

constexpr std::size_t kParts = 7;

/// Returns the bytes of each part of the memory, in the order in which the constructor takes them.
[[gnu::noinline]] std::array<std::size_t, kParts> part_bytes(std::size_t rows, std::size_t outputs,
                                                             std::size_t columns, std::size_t values) {
  const std::size_t scores = rows * outputs * sizeof(double), numbers = rows * sizeof(std::uint32_t);
  return {scores,
          scores,
          numbers,
          numbers,
          packed_code_bytes(rows, columns),
          packed_rows(rows) * values * sizeof(float),
          rows};
}

}  // namespace

std::size_t UndecidedRows::bytes(std::size_t rows, std::size_t outputs, std::size_t columns,
                                 std::size_t values) {
  std::size_t all = 0;
  for (const std::size_t part : part_bytes(rows, outputs, columns, values)) all += whole_lines(part);
  return all;
}

UndecidedRows::UndecidedRows(const Pass& pass, const Target& target, EarlyStopRule rule, std::size_t outputs,
                             std::size_t columns, std::size_t values, std::byte* memory)
    : target_(target), outputs_(outputs), columns_(columns), values_(values), rows_(pass.row_count) {
  std::byte* parts[kParts];
  const auto sizes = part_bytes(rows_, outputs, columns, values);
  for (std::size_t i = 0; i < kParts; ++i) {
    parts[i] = memory;
    memory += whole_lines(sizes[i]);
  }
  all_ = reinterpret_cast<double*>(parts[0]);
  sums_.scores = reinterpret_cast<double*>(parts[1]);
  numbers_ = reinterpret_cast<std::uint32_t*>(parts[2]);
  kept_ = reinterpret_cast<std::uint32_t*>(parts[3]);
  packed_codes_ = reinterpret_cast<std::uint8_t*>(parts[4]);
  packed_values_ = reinterpret_cast<float*>(parts[5]);
  sums_.decided = reinterpret_cast<std::uint8_t*>(parts[6]);
  sums_.rule = rule;
  sums_.margin = pass.options->early_stop->margin;
  std::memset(sums_.decided, 0, rows_);
  for (std::uint32_t row = 0; row < rows_; ++row) numbers_[row] = row;
}

/// Packs the undecided rows of a pass, of which there are `left`.
void UndecidedRows::pack(Pass& pass, std::uint32_t left) {
  std::uint32_t k = 0;
  for (std::uint32_t row = 0; row < rows_; ++row) {
    const double* const sums = sums_.scores + row * outputs_;
    if (sums_.decided[row] != 0) {
      std::copy_n(sums, outputs_, all_ + numbers_[row] * outputs_);
      continue;
    }
    std::copy_n(sums, outputs_, sums_.scores + k * outputs_);
    numbers_[k] = numbers_[row];
    kept_[k++] = row;
  }
  if (columns_ != 0) {
    target_.pack({pass.codes, kept_, left, columns_, packed_codes_});
    pass.codes = packed_codes_;
  }
  if (values_ != 0) {
    for (std::uint32_t i = 0; i < left; ++i)
      std::copy_n(pass.rows + kept_[i] * pass.row_stride, values_, packed_values_ + i * values_);
    pass.rows = packed_values_;
    pass.row_stride = values_;
  }
  rows_ = pass.row_count = left;
  std::memset(sums_.decided, 0, rows_);
}

bool UndecidedRows::next(Pass& pass, bool packs) {
  sums_.begun = true;
  const std::uint32_t left = sums_.left(0, rows_);
  if (packs && left != 0 && left <= packed_rows(rows_)) pack(pass, left);
  return left != 0;
}

UndecidedSums& UndecidedRows::finish() {
  for (std::uint32_t row = 0; row < rows_; ++row)
    std::copy_n(sums_.scores + row * outputs_, outputs_, all_ + numbers_[row] * outputs_);
  sums_.scores = all_;
  sums_.begun = sums_.finished = true;
  return sums_;
}

}  // namespace forestvm::host
