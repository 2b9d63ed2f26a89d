// See npz.hpp.
#include "cli/io/npz.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/internal/formatted.hpp>

#include "cli/io/npy.hpp"
#include "cli/io/quote.hpp"
#include "cli/io/sparse_row.hpp"
#include "cli/io/zip_archive.hpp"

namespace forestvm::cli {
namespace {

constexpr std::string_view kEnding = ".npy";
constexpr std::size_t kShownEntries = 5;
/// The number of values of each array of a sparse matrix that are in memory at a time.
constexpr std::size_t kStreamBlock = std::size_t{1} << 16;

/// Puts the name of the array before the place of an error.
Error in_array(std::string_view name, Error error) {
  error.where = formatted("array {}{}", single_quoted(name), (error.where.empty() ? "" : ", " + error.where));
  return error;
}

using Entry = ZipArchive::Entry;

const Entry* find_array(const ZipArchive& archive, std::string_view name) {
  for (const Entry& entry : archive.entries())
    if (entry.name == name || entry.name == std::string(name) + std::string(kEnding)) return &entry;
  return nullptr;
}

/// Returns the names of the arrays of the archive, without their ending.
std::vector<std::string> array_names(const ZipArchive& archive) {
  std::vector<std::string> names;
  for (const Entry& entry : archive.entries())
    if (entry.name.ends_with(kEnding))
      names.push_back(entry.name.substr(0, entry.name.size() - kEnding.size()));
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  return quoted_list(std::span(names).first(std::min(names.size(), kShownEntries)), names.size());
}

Result<Source> open_array(const ZipArchive& archive, const char* name) {
  const Entry* const entry = find_array(archive, name);
  if (entry == nullptr) return refused("is a sparse matrix without the array " + single_quoted(name));
  auto source = archive.open_entry(*entry);
  return source ? std::move(source) : in_array(name, source.error());
}

/// Gives the rows of a dense array.
class ArchivedArray final : public TableReader {
 public:
  static Result<std::unique_ptr<TableReader>> open(ZipArchive archive, const Entry& entry,
                                                   const RowForm& form) {
    FVM_ASSIGN(Source opened, archive.open_entry(entry));
    auto source = std::make_unique<Source>(std::move(opened));
    auto table = npy_reader(*source, NpyShape::Matrix, form);
    if (!table) return in_array(entry.name, table.error());
    return std::unique_ptr<TableReader>(
        new ArchivedArray(std::move(archive), entry.name, std::move(source), std::move(*table)));
  }

  Result<void> read(std::size_t most, Rows& rows) override {
    auto done = table_->read(most, rows);
    return done ? done : in_array(name_, done.error());
  }

 private:
  ArchivedArray(ZipArchive archive, std::string name, std::unique_ptr<Source> source,
                std::unique_ptr<TableReader> table)
      : TableReader(table->type()),
        archive_(std::move(archive)),
        name_(std::move(name)),
        source_(std::move(source)),
        table_(std::move(table)) {
    columns_ = table_->columns();
    rows_ = table_->rows();
  }

  ZipArchive archive_;
  std::string name_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<TableReader> table_;
};

/// The numbers of a vector, one after the other.
class Numbers {
 public:
  static Result<Numbers> open(const ZipArchive& archive, const char* name, const RowForm& form) {
    Numbers numbers;
    numbers.name_ = name;
    FVM_ASSIGN(Source source, open_array(archive, name));
    numbers.source_ = std::make_unique<Source>(std::move(source));
    auto table = npy_reader(*numbers.source_, NpyShape::VectorOrMatrix, form);
    if (!table) return in_array(name, table.error());
    numbers.table_ = std::move(*table);
    if (numbers.table_->columns() != 1) return in_array(name, refused("is not a vector"));
    return numbers;
  }

  std::size_t count() const { return table_->rows().value_or(0); }
  RowType type() const { return table_->type(); }

  Result<double> next() {
    if (at_ == block_.count) {
      if (auto done = table_->read(kStreamBlock, block_); !done) return in_array(name_, done.error());
      at_ = 0;
      if (block_.count == 0) return in_array(name_, refused("ends too early"));
    }
    return block_.value(at_++);
  }

  /// Returns the next number, which must be whole and from 0 to `most`.
  Result<std::size_t> next_index(std::size_t most) {
    FVM_ASSIGN(const double number, next());
    if (!(number >= 0 && number <= static_cast<double>(most)) ||
        number != static_cast<double>(static_cast<std::size_t>(number)))
      return in_array(name_, refused(formatted("has {}, expected a whole number from 0 to {}",
                                               std::to_string(number), most)));
    return static_cast<std::size_t>(number);
  }

 private:
  std::string name_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<TableReader> table_;
  Rows block_;
  std::size_t at_ = 0;
};

/// The arrays of a CSR matrix, read side by side.
struct CsrArrays {
  ZipArchive archive;
  std::size_t rows;
  Numbers ends, features, values;
};

template <class Number>
class CsrReader final : public TableReader {
 public:
  CsrReader(CsrArrays arrays, const RowForm& form)
      : TableReader(kRowType<Number>), arrays_(std::move(arrays)), width_(form.width), sparse_(form) {
    columns_ = width_;
    rows_ = arrays_.rows;
  }

  Result<void> read(std::size_t most, Rows& rows) override {
    begin_block<Number>(rows);
    for (; rows.count < most && done_ < arrays_.rows; ++rows.count, ++done_)
      FVM_TRY(read_row(rows.numbers<Number>()));
    if (done_ == arrays_.rows && at_ != arrays_.values.count())
      return refused(
          formatted("is a damaged CSR matrix: its rows end at value {} of {}", at_, arrays_.values.count()));
    return {};
  }

 private:
  Result<void> read_row(std::vector<Number>& values) {
    const std::string place = formatted("row {}", done_);
    FVM_ASSIGN(const std::size_t end, arrays_.ends.next_index(arrays_.values.count()));
    if (end < at_) return refused(place, "ends before it begins, in a damaged CSR matrix");
    sparse_.begin_row(values);
    for (; at_ < end; ++at_) {
      FVM_ASSIGN(const std::size_t feature, arrays_.features.next_index(width_ - 1));
      FVM_ASSIGN(const double value, arrays_.values.next());
      if (!sparse_.set(values, feature, static_cast<Number>(value)))
        return refused(place, "has column {} twice (scipy's sum_duplicates() adds them)", feature);
    }
    return {};
  }

  CsrArrays arrays_;
  std::size_t width_, done_ = 0, at_ = 0;
  SparseRows<Number> sparse_;
};

/// Returns the text of the array `format`, which has bytes or UTF-32 characters.
Result<std::string> sparse_format(const ZipArchive& archive) {
  FVM_ASSIGN(Source source, open_array(archive, "format"));
  FVM_TRY(read_npy_header(source));
  std::string text(64, '\0');
  FVM_ASSIGN(const std::size_t got, source.read(text.data(), text.size()));
  text.resize(got);
  std::erase(text, '\0');
  return text;
}

Result<std::unique_ptr<TableReader>> csr_reader(ZipArchive archive, const RowForm& form) {
  FVM_ASSIGN(const std::string format, sparse_format(archive));
  if (format != "csr")
    return refused(formatted(
        "is a sparse matrix in the form {}; expected 'csr': save it with scipy.sparse.save_npz(file, matrix.tocsr())",
        single_quoted(format)));
  const RowForm whole{.wide = true}, numbers{.wide = form.wide, .missing = form.missing};
  FVM_ASSIGN(Numbers shape, Numbers::open(archive, "shape", whole));
  if (shape.count() != 2) return refused("is a sparse matrix whose shape is not a pair of numbers");
  FVM_ASSIGN(const std::size_t rows, shape.next_index(std::size_t{1} << 53U));
  FVM_ASSIGN(const std::size_t columns, shape.next_index(std::size_t{1} << 53U));
  if (columns != form.width) return wrong_width(columns, form.width);
  FVM_ASSIGN(Numbers ends, Numbers::open(archive, "indptr", whole));
  FVM_ASSIGN(Numbers features, Numbers::open(archive, "indices", whole));
  FVM_ASSIGN(Numbers values, Numbers::open(archive, "data", numbers));
  if (ends.count() != rows + 1 || features.count() != values.count())
    return refused(
        formatted("is a damaged CSR matrix: {} rows, {} ends of rows, {} columns of values, {} values", rows,
                  ends.count(), features.count(), values.count()));
  FVM_TRY(ends.next_index(0));
  const bool wide = values.type() == RowType::Float64;
  CsrArrays arrays{std::move(archive), rows, std::move(ends), std::move(features), std::move(values)};
  if (wide) return std::unique_ptr<TableReader>(std::make_unique<CsrReader<double>>(std::move(arrays), form));
  return std::unique_ptr<TableReader>(std::make_unique<CsrReader<float>>(std::move(arrays), form));
}

/// Returns the array that the form names, or the only one.
Result<Entry> chosen_array(const ZipArchive& archive, const RowForm& form) {
  const std::vector<std::string> names = array_names(archive);
  if (names.empty()) return refused("is a ZIP archive without arrays (.npy); an .xlsx file?");
  if (!form.array && names.size() > 1)
    return refused(formatted("holds several arrays, {}: choose one with --array", listed(names)));
  const std::string name = form.array.value_or(names.front());
  const Entry* const entry = find_array(archive, name);
  if (entry == nullptr)
    return refused(formatted("has no array {}; it has {}", single_quoted(name), listed(names)));
  return *entry;
}

}  // namespace

Result<std::unique_ptr<TableReader>> npz_reader(Source& source, const RowForm& form) {
  FVM_ASSIGN(ZipArchive archive, ZipArchive::open(source));
  const bool is_sparse = find_array(archive, "format") != nullptr && find_array(archive, "shape") != nullptr;
  if (is_sparse && !form.array) return csr_reader(std::move(archive), form);
  FVM_ASSIGN(const Entry entry, chosen_array(archive, form));
  return ArchivedArray::open(std::move(archive), entry, form);
}

}  // namespace forestvm::cli
