// See rows.hpp.
#include "cli/io/rows.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/io/coded_file.hpp"
#include "cli/io/csv.hpp"
#include "cli/io/npy.hpp"

namespace forestvm::cli {
namespace {

Result<std::unique_ptr<TableReader>> table_reader(Source& source, const RowForm& form) {
  FVM_ASSIGN(const std::string_view start, source.peek(std::max(kNpyMagic.size(), kCodedMagic.size())));
  if (CodedReader::is_coded(start)) return refused("", "holds encoded rows, which run and bench take");
  if (!start.starts_with(kNpyMagic)) return csv_reader(source, form);
  if (form.header != Header::Auto)
    return Error{ErrorCode::Usage, "", "is an NPY array: --header is for CSV files"};
  return npy_reader(source, NpyShape::Matrix, form);
}

}  // namespace

Result<RowReader> RowReader::open(Source source, const RowForm& form) {
  RowReader reader;
  reader.source_ = std::make_unique<Source>(std::move(source));
  FVM_ASSIGN(reader.table_, table_reader(*reader.source_, form));
  return reader;
}

Result<RowReader> RowReader::open(const std::string& path, const RowForm& form) {
  FVM_ASSIGN(Source source, Source::open(path));
  return open(std::move(source), form);
}

Result<void> RowReader::next(std::size_t most, Rows& rows) { return table_->read(most, rows); }

}  // namespace forestvm::cli
