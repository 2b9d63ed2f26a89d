// See batches.hpp.
#include "cli/batches.hpp"

#include <algorithm>
#include <vector>

#include "cli/io/csv.hpp"
#include "cli/io/quote.hpp"
#include "cli/io/source.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

constexpr std::uint64_t kDefaultBatch = 65'536;
constexpr std::size_t kDefaultBatchBytes = std::size_t{64} << 20;  ///< of rows, where those would be more
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 31;

}  // namespace

constinit const Option kMissingOption = {
    "missing", '\0', "X", "rows' values equal to X (as float32) are missing, as NaN always is"};
Result<BatchOptions> batch_options(const Arguments& arguments) {
  BatchOptions options;
  FVM_ASSIGN(options.path, required(arguments, "ROWS"));
  if (arguments.has("batch")) {
    FVM_ASSIGN(options.batch, arguments.number("batch", 1, kMostRows, kDefaultBatch));
  }
  if (arguments.has("missing")) {
    options.missing = parse_float(arguments.get("missing"));
    if (!options.missing)
      return usage_error("--missing " + in_quotes(arguments.get("missing")) + ": expected a number");
  }
  return options;
}

Result<Batches> Batches::open(const BatchOptions& options, const Program& program) {
  FVM_ASSIGN(Source source, in_file(options.path, Source::open(options.path)));
  FVM_ASSIGN(const std::string_view start, in_file(options.path, source.peek(kCodedMagic.size())));
  if (CodedReader::is_coded(start)) {
    if (options.batch || options.missing)
      return usage_error(std::string(options.batch ? "--batch: " : "--missing: ") + in_quotes(options.path) +
                         " holds encoded rows: give it to forestvm encode");
    FVM_ASSIGN(CodedReader reader, in_file(options.path, CodedReader::open(std::move(source))));
    Batches batches(options, std::move(reader));
    batches.total_ = batches.left();
    FVM_TRY(batches.read());
    return batches;
  }
  const ProgramMeta& meta = program.meta();
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < meta.num_feature_names; ++i) names.emplace_back(program.feature_name(i));
  const RowForm form{meta.num_features, names, meta.score_type == ScalarType::Float64};
  FVM_ASSIGN(RowReader reader, in_file(options.path, RowReader::open(std::move(source), form)));
  const std::optional<std::size_t> count = reader.count();
  Batches batches(options, std::move(reader));
  batches.total_ = count.value_or(batches.left());
  const std::size_t width = std::max<std::size_t>(meta.num_features, 1);
  const std::size_t most = std::max<std::size_t>(kDefaultBatchBytes / sizeof(float) / width, 1);
  batches.size_ = options.batch.value_or(std::min<std::size_t>(kDefaultBatch, most));
  if (count) batches.size_ = std::max<std::size_t>(std::min(batches.size_, *count), 1);
  FVM_TRY(batches.read());
  return batches;
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
  if (auto* const coded = std::get_if<CodedReader>(&reader_)) {
    FVM_ASSIGN(rows_, in_file(options_.path, coded->next()));
    return {};
  }
  FVM_TRY(in_file(options_.path, std::get<RowReader>(reader_).next(size_, dense_)));
  if (options_.missing) mark_missing(dense_, *options_.missing);
  rows_ = RowBlock{dense_.values.data(), dense_.count, dense_.width};
  return {};
}

}  // namespace forestvm::cli
