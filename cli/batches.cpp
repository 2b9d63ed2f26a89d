// See batches.hpp.
#include "cli/batches.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include <forestvm/internal/formatted.hpp>

#include "cli/io/gzip_source.hpp"
#include "cli/io/quote.hpp"
#include "cli/io/source.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

constexpr std::uint64_t kDefaultBatch = 65'536;
/// The most bytes of a batch's rows and answers. A batch has fewer than kDefaultBatch rows if these would take more.
constexpr std::size_t kBatchBytes = std::size_t{32} << 20;
constexpr std::uint64_t kMaxRows = std::uint64_t{1} << 31;

std::size_t most_rows(std::size_t row_bytes) {
  return std::clamp<std::size_t>(kBatchBytes / std::max<std::size_t>(row_bytes, 1), 1, kDefaultBatch);
}

}  // namespace

Result<BatchOptions> batch_options(const Arguments& arguments) {
  BatchOptions options;
  FVM_ASSIGN(options.path, required(arguments, "ROWS"));
  if (arguments.has("batch")) {
    FVM_ASSIGN(options.batch, arguments.number("batch", 1, kMaxRows, kDefaultBatch));
  }
  FVM_ASSIGN(options.form, row_options(arguments));
  return options;
}

Result<Batches> Batches::open(const BatchOptions& options, const Program& program, std::size_t answer_bytes) {
  FVM_ASSIGN(Source source, in_file(options.path, open_unpacked(options.path)));
  FVM_ASSIGN(const bool is_coded, in_file(options.path, source.starts_with(kCodedMagic)));
  if (is_coded) {
    if (options.batch)
      return usage_error(formatted("--batch: {} holds encoded rows: give it to forestvm encode",
                                   single_quoted(options.path)));
    FVM_TRY(expect_no_row_options(options.path, options.form));
    FVM_ASSIGN(CodedReader reader, in_file(options.path, CodedReader::open(std::move(source))));
    Batches batches(options, std::move(reader));
    batches.total_ = batches.left();
    batches.size_ = std::max<std::size_t>(most_rows(answer_bytes) / kCodeRows, 1) * kCodeRows;
    FVM_TRY(batches.read());
    return batches;
  }
  FVM_ASSIGN(RowReader reader, open_rows(options.path, std::move(source), row_form(program, options.form)));
  const std::optional<std::size_t> count = reader.count();
  Batches batches(options, std::move(reader));
  batches.total_ = count.value_or(batches.left());
  const bool wide = std::get<RowReader>(batches.reader_).type() == RowType::Float64;
  const std::size_t features = program.meta().num_features;
  const std::size_t row_bytes = features * (wide ? sizeof(double) : sizeof(float));
  batches.size_ = options.batch.value_or(most_rows(row_bytes + answer_bytes));
  if (count) batches.size_ = std::max<std::size_t>(std::min(batches.size_, *count), 1);
  // Allocates a whole batch at once, because a vector that grows step by step takes twice as much memory.
  if (!options.batch && wide) batches.dense_.wide_values.reserve(batches.size_ * features);
  if (!options.batch && !wide) batches.dense_.values.reserve(batches.size_ * features);
  FVM_TRY(batches.read());
  return batches;
}

Progress Batches::progress(const std::string& output) const {
  const bool seen = output == "-" && ::isatty(STDOUT_FILENO) == 1;
  return Progress(STDERR_FILENO, seen ? 0 : total_, std::chrono::seconds(1), false,
                  counted() ? "rows" : "bytes");
}

bool Batches::counted() const {
  const auto* const dense = std::get_if<RowReader>(&reader_);
  return dense != nullptr && dense->count().has_value();
}

std::size_t Batches::left() const {
  const auto bytes = std::visit([](const auto& reader) { return reader.bytes_left(); }, reader_);
  return static_cast<std::size_t>(bytes.value_or(0));
}

Result<void> Batches::next() {
  before_ += row_count(rows_);
  return read();
}

Result<void> Batches::read() {
  if (auto* const reader = std::get_if<CodedReader>(&reader_)) {
    if (coded_.count == 0) {
      FVM_ASSIGN(coded_, in_file(options_.path, reader->next()));
    }
    CodedRows part = coded_;
    part.count = std::min(part.count, size_);
    const std::size_t bytes = code_bytes(part.count, part.columns);
    coded_.codes += bytes;
    coded_.byte_count -= bytes;
    coded_.count -= part.count;
    rows_ = part;
    return {};
  }
  FVM_TRY(in_file(options_.path, std::get<RowReader>(reader_).next(size_, dense_)));
  rows_ = dense_.block();
  return {};
}

}  // namespace forestvm::cli
