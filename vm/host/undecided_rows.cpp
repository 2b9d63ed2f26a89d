// See undecided_rows.hpp.
#include "vm/host/undecided_rows.hpp"

#include <algorithm>
#include <array>

#include <forestvm/core/early_stop.hpp>
#include <forestvm/core/encoder.hpp>

#include "vm/host/lines.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm::host {
namespace {

/// Returns the most undecided rows of a chunk of `rows` that are packed.
constexpr std::size_t packed_rows(std::size_t rows) { return rows * 7 / 8; }

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
          rows * sizeof(std::uint64_t)};
}

// The numbers of two rows, which are compared and chosen together.
typedef double Scores __attribute__((vector_size(16), aligned(alignof(double)), may_alias));
typedef std::uint64_t Bits __attribute__((vector_size(16), aligned(alignof(double)), may_alias));

Bits bits_of(const Scores& scores) { return reinterpret_cast<Bits>(scores); }

/// Returns the numbers of `a` where `where` is all bits, and those of `b` elsewhere.
Scores chosen(const Bits& where, const Scores& a, const Scores& b) {
  return reinterpret_cast<Scores>((bits_of(a) & where) | (bits_of(b) & ~where));
}

/// Keeps the sums of a row: see UndecidedSums::keep.
[[gnu::cold, gnu::noinline]] void keep_row(EarlyStopRule rule, const double* sums, std::size_t outputs,
                                           double margin, double* kept, std::uint64_t& decided) {
  if (decided == 0) std::copy_n(sums, outputs, kept);
  const bool now = is_decided(rule, kept, static_cast<std::uint32_t>(outputs), margin);
  decided = now ? ~std::uint64_t{0} : 0;
}

/// Keeps the scores of two rows, which have one each.
void keep_scores(const double* sums, double margin, double* kept, std::uint64_t* decided) {
  auto* const known = reinterpret_cast<Bits*>(decided);
  auto* const mine = reinterpret_cast<Scores*>(kept);
  *mine = chosen(*known, *mine, *reinterpret_cast<const Scores*>(sums));
  const auto distance = reinterpret_cast<Scores>(bits_of(*mine) & (~Bits{} >> 1));
  *known = reinterpret_cast<Bits>(2 * distance > margin);
}

/// Keeps the scores of two rows, whose rule is Lead, and decides about them.
void keep_leads(const double* sums, std::uint32_t outputs, double margin, double* kept,
                std::uint64_t* decided) {
  auto* const known = reinterpret_cast<Bits*>(decided);
  const Bits before = *known;
  const auto keep = [&](std::uint32_t k) {
    const Scores now{sums[k], sums[outputs + k]}, mine{kept[k], kept[outputs + k]};
    const Scores score = chosen(before, mine, now);
    kept[k] = score[0];
    kept[outputs + k] = score[1];
    return score;
  };
  *known = reinterpret_cast<Bits>(lead_of<Scores>(outputs, keep) > margin);
}

}  // namespace

std::uint32_t UndecidedSums::left(const Range& rows) const {
  std::uint64_t count = 0;  // less than 0 by the number of decided rows
  for (std::uint32_t row = rows.begin; row < rows.end; ++row) count += decided[row];
  return rows.size() + static_cast<std::uint32_t>(count);
}

void UndecidedSums::keep(const Range& rows, const double* sums, std::size_t outputs) const {
  double* kept = scores + rows.begin * outputs;
  const double least = margin;
  const auto count = static_cast<std::uint32_t>(outputs);
  std::uint32_t row = rows.begin;
  // Nothing branches on which rows are decided: no processor would foresee it.
  if (count == 1)
    for (; row + 2 <= rows.end; row += 2, kept += 2, sums += 2) keep_scores(sums, least, kept, decided + row);
  else if (rule == EarlyStopRule::Lead)
    for (; row + 2 <= rows.end; row += 2, kept += 2 * outputs, sums += 2 * outputs)
      keep_leads(sums, count, least, kept, decided + row);
  for (; row < rows.end; ++row, kept += outputs, sums += outputs)
    keep_row(rule, sums, outputs, least, kept, decided[row]);
}

[[gnu::cold]] std::size_t UndecidedRows::bytes(std::size_t rows, std::size_t outputs, std::size_t columns,
                                               std::size_t values) {
  std::size_t all = 0;
  for (const std::size_t part : part_bytes(rows, outputs, columns, values)) all += whole_lines(part);
  return all;
}

[[gnu::cold]] UndecidedRows::UndecidedRows(const Pass& pass, const Target& target, EarlyStopRule rule,
                                           std::size_t outputs, std::size_t columns, std::size_t values,
                                           std::byte* memory)
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
  sums_.decided = reinterpret_cast<std::uint64_t*>(parts[6]);
  sums_.rule = rule;
  sums_.margin = pass.options->early_stop->margin;
  std::fill_n(sums_.decided, rows_, 0);
  for (std::uint32_t row = 0; row < rows_; ++row) numbers_[row] = row;
}

/// Packs the undecided rows of a pass, of which there are `left`.
void UndecidedRows::pack(Pass& pass, std::uint32_t left) {
  // Each row is moved, and written to the sums of all rows, whether it is decided or not.
  std::uint32_t k = 0;
  for (std::uint32_t row = 0; row < rows_; ++row) {
    const double* const sums = sums_.scores + row * outputs_;
    double *const to = all_ + numbers_[row] * outputs_, *const packed = sums_.scores + k * outputs_;
    std::size_t i = 0;
    for (; i + 2 <= outputs_; i += 2)
      *reinterpret_cast<Scores*>(to + i) = *reinterpret_cast<Scores*>(packed + i) =
          *reinterpret_cast<const Scores*>(sums + i);
    if (i < outputs_) packed[i] = to[i] = sums[i];
    numbers_[k] = numbers_[row];
    kept_[k] = row;
    k += sums_.decided[row] == 0 ? 1 : 0;
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
  std::fill_n(sums_.decided, rows_, 0);
}

bool UndecidedRows::next(Pass& pass, bool packs) {
  sums_.begun = true;
  const std::uint32_t left = sums_.left({0, rows_, 0});
  if (packs && left != 0 && left <= packed_rows(rows_)) pack(pass, left);
  return left != 0;
}

[[gnu::cold]] UndecidedSums& UndecidedRows::finish() {
  for (std::uint32_t row = 0; row < rows_; ++row)
    for (std::size_t i = 0; i < outputs_; ++i)
      all_[numbers_[row] * outputs_ + i] = sums_.scores[row * outputs_ + i];
  sums_.scores = all_;
  sums_.begun = sums_.finished = true;
  return sums_;
}

}  // namespace forestvm::host
