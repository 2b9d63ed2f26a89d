// See rows.hpp.
#include "cli/io/rows.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "cli/io/coded_file.hpp"
#include "cli/io/csv.hpp"
#include "cli/io/gzip_source.hpp"
#include "cli/io/json_lines.hpp"
#include "cli/io/libsvm.hpp"
#include "cli/io/npy.hpp"
#include "cli/io/npz.hpp"

namespace forestvm::cli {
namespace {

/// The most bytes of blank lines and comments before the first row that are looked at to tell the format.
constexpr std::size_t kMaxComments = std::size_t{1} << 16;

struct FormatRow {
  RowFormat format;
  const char* what;
  Result<std::unique_ptr<TableReader>> (*reader)(Source& source, const RowForm& form);
};

Result<std::unique_ptr<TableReader>> matrix_reader(Source& source, const RowForm& form) {
  return npy_reader(source, NpyShape::Matrix, form);
}

/// The readers, in the order of the enumeration from Csv on.
constexpr std::array kFormatRows = {
    FormatRow{RowFormat::Csv, "is CSV", csv_reader},
    FormatRow{RowFormat::Npy, "is an NPY array", matrix_reader},
    FormatRow{RowFormat::Npz, "is an NPZ archive", npz_reader},
    FormatRow{RowFormat::Libsvm, "is a libsvm file", libsvm_reader},
    FormatRow{RowFormat::JsonLines, "holds JSON lines", json_lines_reader},
};

/// A set of formats: bit i is for the format with the number i.
using Formats = unsigned;

template <class... Format>
constexpr Formats only(Format... formats) {
  return (... | (1u << static_cast<unsigned>(formats)));
}

constexpr Formats kAllFormats = ~0u;

/// An option of rows, and the formats that it is for.
struct OptionRow {
  const char* option;
  bool (*is_given)(const RowForm& form);
  Formats formats;
  const char* what = "";
};

constexpr std::array kOptionRows = {
    OptionRow{"--format", [](const RowForm& form) { return form.format != RowFormat::Auto; }, kAllFormats},
    OptionRow{"--header", [](const RowForm& form) { return form.header != Header::Auto; },
              only(RowFormat::Csv), "CSV"},
    OptionRow{"--separator", [](const RowForm& form) { return form.separator.has_value(); },
              only(RowFormat::Csv), "CSV"},
    OptionRow{"--na", [](const RowForm& form) { return form.missing_words.has_value(); },
              only(RowFormat::Csv, RowFormat::Libsvm, RowFormat::JsonLines), "texts"},
    OptionRow{"--extra-columns", [](const RowForm& form) { return form.ignores_extra; },
              only(RowFormat::Csv, RowFormat::JsonLines), "CSV and JSON lines"},
    OptionRow{"--keep", [](const RowForm& form) { return form.keep.has_value(); },
              only(RowFormat::Csv, RowFormat::JsonLines), "CSV and JSON lines"},
    OptionRow{"--array", [](const RowForm& form) { return form.array.has_value(); }, only(RowFormat::Npz),
              "NPZ"},
    OptionRow{"--index-base", [](const RowForm& form) { return form.index_base.has_value(); },
              only(RowFormat::Libsvm), "libsvm"},
    OptionRow{"--missing", [](const RowForm& form) { return form.missing.has_value(); }, kAllFormats},
};

/// Returns the format of a text, by the first line that is neither blank nor a comment.
Result<RowFormat> format_of_text(Source& source) {
  for (std::size_t begin = 0;;) {
    const std::size_t had = begin;
    FVM_ASSIGN(std::string_view seen, source.peek(had + 1));
    std::size_t end = seen.find('\n', begin);
    while (end == std::string_view::npos && seen.size() < kMaxComments) {
      const std::size_t size = seen.size();
      FVM_ASSIGN(seen, source.peek(size + 1));
      if (seen.size() == size) break;
      end = seen.find('\n', size);
    }
    const std::string_view line = seen.substr(std::min(begin, seen.size()), end - begin);
    const std::size_t first = line.find_first_not_of(" \t\r");
    const bool is_blank = first == std::string_view::npos;
    if (!is_blank && (line[first] == '{' || line[first] == '[')) return RowFormat::JsonLines;
    if (!is_blank && !line.starts_with('#')) return is_libsvm(line) ? RowFormat::Libsvm : RowFormat::Csv;
    if (end >= kMaxComments) return RowFormat::Csv;
    begin = end + 1;
  }
}

Result<RowFormat> found_format(Source& source) {
  struct Start {
    std::string_view bytes;
    RowFormat format;
  };
  for (const Start& start : {Start{kNpyMagic, RowFormat::Npy}, Start{kZipMagic, RowFormat::Npz},
                             Start{kEmptyZipMagic, RowFormat::Npz}}) {
    FVM_ASSIGN(const bool found, source.starts_with(start.bytes));
    if (found) return start.format;
  }
  return format_of_text(source);
}

Result<std::unique_ptr<TableReader>> table_reader(Source& source, const RowForm& form) {
  FVM_ASSIGN(const bool is_coded, source.starts_with(kCodedMagic));
  if (is_coded) return refused("holds encoded rows, which only run, bench and proximity take");
  FVM_ASSIGN(const bool has_mark, source.starts_with(kByteOrderMark));
  if (has_mark) source.skip(kByteOrderMark.size());
  RowFormat format = form.format;
  if (format == RowFormat::Auto) {
    FVM_ASSIGN(format, found_format(source));
  }
  const FormatRow& row = kFormatRows[static_cast<std::size_t>(format) - 1];
  for (const OptionRow& option : kOptionRows) {
    const bool fits = (option.formats & only(format)) != 0;
    if (!fits && option.is_given(form))
      return usage("{}: {} is for {}", row.what, option.option, option.what);
  }
  return row.reader(source, form);
}

}  // namespace

const char* first_option(const RowForm& form) {
  for (const OptionRow& option : kOptionRows)
    if (option.is_given(form)) return option.option;
  return nullptr;
}

Result<RowReader> RowReader::open(Source source, const RowForm& form) {
  RowReader reader;
  FVM_ASSIGN(Source plain, unpacked(std::move(source)));
  reader.source_ = std::make_unique<Source>(std::move(plain));
  FVM_ASSIGN(reader.table_, table_reader(*reader.source_, form));
  return reader;
}

Result<void> RowReader::next(std::size_t most, Rows& rows) { return table_->read(most, rows); }

}  // namespace forestvm::cli
