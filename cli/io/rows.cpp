// See rows.hpp.
#include "cli/io/rows.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "cli/io/coded_file.hpp"
#include "cli/io/csv.hpp"
#include "cli/io/npy.hpp"
#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

Result<std::unique_ptr<TableReader>> table_reader(Source& source, std::span<const std::string> names) {
  FVM_ASSIGN(const std::string_view start, source.peek(std::max(kNpyMagic.size(), kCodedMagic.size())));
  if (CodedReader::is_coded(start)) return refused("", "holds encoded rows, which run and bench take");
  return start.starts_with(kNpyMagic) ? npy_reader(source) : csv_reader(source, names);
}

using Places = std::unordered_map<std::string_view, std::size_t>;

Result<Places> places_of(std::span<const std::string> names, const std::string& whose) {
  Places places;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!places.emplace(names[i], i).second)
      return refused("header", whose + " has two columns named " + in_quotes(names[i]));
  return places;
}

/// The names that are not among the others.
std::vector<std::string> absent(std::span<const std::string> names, const Places& others) {
  std::vector<std::string> out;
  std::copy_if(names.begin(), names.end(), std::back_inserter(out),
               [&others](const std::string& name) { return !others.contains(name); });
  return out;
}

/// For each feature of the model, the table's column; refused when the two sets of names differ.
Result<std::vector<std::size_t>> match_columns(std::span<const std::string> columns,
                                               std::span<const std::string> features) {
  FVM_ASSIGN(const Places column_places, places_of(columns, "the file"));
  FVM_ASSIGN(const Places feature_places, places_of(features, "the model"));
  const std::vector<std::string> lacking = absent(features, column_places);
  const std::vector<std::string> strange = absent(columns, feature_places);
  std::string message;
  if (!lacking.empty()) message = "lacks of the model's features " + quoted_list(lacking);
  if (!strange.empty())
    message += (lacking.empty() ? "" : "; ") + ("has columns that the model lacks: " + quoted_list(strange));
  if (!message.empty()) return refused("header", message);
  std::vector<std::size_t> order;
  for (const std::string& feature : features) order.push_back(column_places.at(feature));
  return order;
}

void permute_columns(std::vector<float>& values, const std::vector<std::size_t>& order) {
  std::vector<float> row(order.size());
  for (auto at = values.begin(); at != values.end(); at += static_cast<std::ptrdiff_t>(row.size())) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = at[static_cast<std::ptrdiff_t>(order[i])];
    std::copy(row.begin(), row.end(), at);
  }
}

}  // namespace

Result<RowReader> RowReader::open(Source source, const RowForm& form) {
  RowReader reader;
  reader.source_ = std::make_unique<Source>(std::move(source));
  reader.exact_ = form.exact;
  FVM_ASSIGN(reader.table_, table_reader(*reader.source_, form.names));
  const TableHeader& header = reader.table_->header();
  if (!header.names.empty() && !form.names.empty()) {
    FVM_ASSIGN(reader.order_, match_columns(header.names, form.names));
    if (std::is_sorted(reader.order_.begin(), reader.order_.end())) reader.order_.clear();
  } else if (header.columns != form.width) {
    return refused("", "has " + std::to_string(header.columns) + " columns, the model has " +
                           std::to_string(form.width) + " features");
  } else if (header.mixed_header) {
    return refused("line 1", "mixes names and numbers: it is neither a header nor a row");
  }
  return reader;
}

Result<RowReader> RowReader::open(const std::string& path, const RowForm& form) {
  FVM_ASSIGN(Source source, Source::open(path));
  return open(std::move(source), form);
}

Result<void> RowReader::next(std::size_t most, Rows& rows) {
  rows.width = table_->header().columns;
  rows.values.clear();
  FVM_ASSIGN(rows.count, table_->read(most, rows.values));
  if (exact_ && table_->rounded())
    return refused(
        "",
        "has float64 numbers that are no float32: rounded they could go another way in this model, "
        "whose thresholds are float64; round them yourself if that is meant");
  if (!order_.empty()) permute_columns(rows.values, order_);
  return {};
}

Result<Rows> read_rows(Source source, const RowForm& form) {
  FVM_ASSIGN(RowReader reader, RowReader::open(std::move(source), form));
  Rows rows;
  FVM_TRY(reader.next(std::numeric_limits<std::size_t>::max(), rows));
  return rows;
}

Result<Rows> read_rows(const std::string& path, const RowForm& form) {
  FVM_ASSIGN(Source source, Source::open(path));
  return read_rows(std::move(source), form);
}

void mark_missing(Rows& rows, float missing) {
  std::replace(rows.values.begin(), rows.values.end(), missing, std::numeric_limits<float>::quiet_NaN());
}

}  // namespace forestvm::cli
