// See repeated_rows.hpp.
#include "cli/repeated_rows.hpp"

#include <algorithm>
#include <utility>

#include <forestvm/core/encoder.hpp>
#include <forestvm/internal/formatted.hpp>

#include "cli/drawn_rows.hpp"
#include "cli/io/gzip_source.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 32;  // most bytes of all rows: 4 GiB
constexpr std::uint64_t kDrawnRows = 16'384;                 // rows drawn if they have at most kDrawnValues
constexpr std::uint64_t kDrawnValues = std::uint64_t{1} << 25;  // most values drawn: 128 MiB

Error too_large(std::uint64_t batch, const std::string& rows) {
  return usage_error(formatted("--batch '{}': with {} it takes more than 4 GiB", batch, rows));
}

Result<RepeatedRows> repeated(Rows rows, std::uint64_t batch) {
  const std::size_t value_bytes = rows.type == RowType::Float64 ? sizeof(double) : sizeof(float);
  if ((rows.count + batch) * std::max<std::size_t>(rows.width, 1) > kMaxBytes / value_bytes)
    return too_large(batch, formatted("{} rows of {} features", rows.count, rows.width));
  const auto repeat = [&](auto& values) {
    values.reserve((rows.count + batch) * rows.width);
    while (values.size() < (rows.count + batch) * rows.width)
      values.push_back(values[values.size() - rows.count * rows.width]);
  };
  rows.type == RowType::Float64 ? repeat(rows.wide_values) : repeat(rows.values);
  const std::size_t count = rows.count, width = rows.width;
  return RepeatedRows{count, width, std::move(rows)};
}

/// Reads whole blocks of codes. The last, incomplete block of a file is used only if there is no other.
Result<RepeatedRows> repeated(CodedReader reader, std::uint64_t batch) {
  RepeatedRows rows;
  rows.codes = std::make_unique<CodeMemory>();
  for (;;) {
    FVM_ASSIGN(const CodedRows more, reader.next());
    if (more.count == 0) break;
    rows.width = more.columns;
    rows.encoder = more.encoder;
    const std::size_t whole = std::max<std::size_t>(more.count / kCodeRows, rows.count == 0 ? 1 : 0);
    const std::size_t had = code_bytes(rows.count, rows.width), bytes = whole * rows.width * kCodeRows;
    if (had + bytes > kMaxBytes) return refused("has more than 4 GiB of codes");
    std::copy_n(more.codes, bytes, rows.codes->resize(had + bytes) + had);
    rows.count += whole * kCodeRows;
  }
  const std::size_t once = code_bytes(rows.count, rows.width);
  const std::size_t all = once + coded_bytes(batch, rows.width);
  if (all > kMaxBytes)
    return too_large(batch, formatted("{} encoded rows of {} columns", rows.count, rows.width));
  std::uint8_t* const codes = rows.codes->resize(all);
  for (std::size_t i = once; i < all && once != 0; ++i) codes[i] = codes[i - once];
  return rows;
}

}  // namespace

Result<RepeatedRows> repeated_rows(const std::string& path, const RowForm& form, const Program& program,
                                   std::uint64_t largest) {
  const ProgramMeta& meta = program.meta();
  if (path.empty()) {
    const std::uint64_t most = kDrawnValues / std::max(meta.num_features, 1U);
    return repeated(draw_rows(program, std::clamp(most, std::uint64_t{1}, kDrawnRows)), largest);
  }
  FVM_ASSIGN(Source source, in_file(path, open_unpacked(path)));
  FVM_ASSIGN(const bool is_coded, in_file(path, source.starts_with(kCodedMagic)));
  if (is_coded) {
    FVM_TRY(expect_no_row_options(path, form));
    FVM_ASSIGN(CodedReader reader, in_file(path, CodedReader::open(std::move(source))));
    FVM_ASSIGN(RepeatedRows rows, in_file(path, repeated(std::move(reader), largest)));
    if (rows.count == 0) return in_file(path, refused("has no rows"));
    return rows;
  }
  FVM_ASSIGN(Rows rows, read_rows(path, std::move(source), row_form(program, form)));
  if (rows.count == 0) return in_file(path, refused("has no rows"));
  return repeated(std::move(rows), largest);
}

std::string text_of(const RepeatedRows& rows, const std::string& path) {
  const std::string count = std::to_string(rows.count) + (rows.codes == nullptr ? " rows" : " encoded rows");
  return path.empty() ? count + " drawn between the model's thresholds, seed 1"
                      : formatted("{} of {}", count, path);
}

Result<void> Caller::call() {
  const AnyRows rows = rows_.batch(next_, batch_);
  next_ = rows_.after(next_, batch_);
  return predictor_.predict(*context_, rows, output_, out_.data());
}

Result<Seconds> Caller::time(std::uint64_t calls) {
  const Clock::time_point begin = Clock::now();
  for (std::uint64_t i = 0; i < calls; ++i) FVM_TRY(call());
  return Seconds(Clock::now() - begin);
}

}  // namespace forestvm::cli
