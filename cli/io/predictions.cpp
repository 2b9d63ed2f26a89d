// See predictions.hpp.
#include "cli/io/predictions.hpp"

#include <cctype>
#include <filesystem>
#include <string_view>
#include <type_traits>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "cli/command.hpp"
#include "cli/io/csv.hpp"
#include "cli/io/npy.hpp"
#include "cli/io/quote.hpp"
#include "cli/io/system_error.hpp"

namespace forestvm::cli {
namespace {

struct TypeRow {
  std::string_view dtype;
  std::size_t size;
};

/// NPY's names of the types and their sizes in bytes, in the order of PredictionForm::Type.
constexpr TypeRow kTypes[] = {{"<f4", 4}, {"<f8", 8}, {"<i4", 4}, {"<i8", 8}};

const TypeRow& row_of(PredictionForm::Type type) { return kTypes[static_cast<std::size_t>(type)]; }

/// The size of the pieces in which text is written.
constexpr std::size_t kTextPiece = std::size_t{1} << 16;

/// Returns the ending of a file's name, in lower case: "npy"; empty if it has none.
std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  if (!ending.empty()) ending.erase(0, 1);
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

template <class T>
void append_cell(std::string& text, T value, std::span<const std::string> labels) {
  if (value >= 0 && value < static_cast<T>(labels.size()))
    return append_text(text, labels[static_cast<std::size_t>(value)]);
  if constexpr (std::is_integral_v<T>)
    append_number(text, std::int64_t{value});
  else
    append_number(text, value);
}

}  // namespace

std::size_t size_of(PredictionForm::Type type) { return row_of(type).size; }

Result<void> check_predictions_name(const std::string& path) {
  const std::string ending = ending_of(path);
  if (ending.empty() || ending == "npy" || ending == "csv") return {};
  return usage_error(formatted("-o {}: predictions are written as .csv or .npy, not as .{}",
                               single_quoted(path, 1000), ending));
}

bool is_npy_name(const std::string& path) { return ending_of(path) == "npy"; }

Result<PredictionWriter> PredictionWriter::open(const std::string& path, const PredictionForm& form) {
  FVM_ASSIGN(OutputFile file, OutputFile::open(path));
  PredictionWriter writer(std::move(file), form, is_npy_name(path));
  if (!writer.npy_) {
    FVM_TRY(writer.write_names());
    return writer;
  }
  if (writer.file_.can_go_back()) {
    FVM_TRY(
        writer.file_.write(writer.header()));  // finish() writes another header of the same length over it
  } else {
    writer.kept_.reset(std::tmpfile());
    if (!writer.kept_) return temporary_file_error();
  }
  return writer;
}

/// Returns the NPY header for the rows that were written.
std::string PredictionWriter::header() const {
  std::vector<std::size_t> shape = {written_ / form_.columns};
  if (!form_.inner.empty())
    shape.insert(shape.end(), form_.inner.begin(), form_.inner.end());
  else if (form_.columns != 1 || form_.matrix)
    shape.push_back(form_.columns);
  return npy_header(row_of(form_.type).dtype, shape);
}

Result<void> PredictionWriter::write_names() {
  if (form_.names.empty()) return {};
  std::string text;
  for (const std::string& name : form_.names) {
    if (!text.empty()) text += ',';
    append_text(text, name);
  }
  return file_.write(text + '\n');
}

// Stands before write, which uses it in a lambda: clang 14 would not instantiate it.
template <class T>
Result<void> PredictionWriter::write_text(std::span<const T> values, std::span<const std::string> kept) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!kept.empty() && i % form_.columns == 0) {
      append_text(text, kept[i / form_.columns]);
      text += ',';
    }
    const bool labelled = form_.group == 1 || i % form_.group + 1 != form_.group;
    append_cell(text, values[i], labelled ? form_.labels : std::span<const std::string>());
    text += (i + 1) % form_.columns == 0 ? '\n' : ',';
    if (text.size() < kTextPiece) continue;
    FVM_TRY(file_.write(text));
    text.clear();
  }
  return file_.write(text);
}

Result<void> PredictionWriter::write(const PredictionValues& values, std::span<const std::string> kept) {
  FVM_CHECK(values.index() == static_cast<std::size_t>(form_.type));
  return std::visit(
      [this, kept](const auto& span) -> Result<void> {
        FVM_CHECK(span.size() % form_.columns == 0);
        FVM_CHECK(kept.empty() || kept.size() == span.size() / form_.columns);
        written_ += span.size();
        return npy_ ? write_bytes(std::as_bytes(span)) : write_text(span, kept);
      },
      values);
}

Result<void> PredictionWriter::write_bytes(std::span<const std::byte> bytes) {
  if (!kept_) return file_.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (std::fwrite(bytes.data(), 1, bytes.size(), kept_.get()) != bytes.size()) return temporary_file_error();
  return {};
}

/// Copies the values from the temporary file after the header.
Result<void> PredictionWriter::write_kept() {
  FVM_TRY(file_.write(header()));
  if (std::fflush(kept_.get()) != 0 || std::fseek(kept_.get(), 0, SEEK_SET) != 0)
    return temporary_file_error();
  std::string piece(kTextPiece, '\0');
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), kept_.get()))
    FVM_TRY(file_.write(std::string_view(piece).substr(0, got)));
  return std::ferror(kept_.get()) != 0 ? temporary_file_error() : Result<void>();
}

Result<void> PredictionWriter::flush() {
  return npy_ || file_.can_go_back() ? Result<void>() : file_.flush();
}

Result<void> PredictionWriter::finish() {
  if (kept_)
    FVM_TRY(write_kept());
  else if (npy_)
    FVM_TRY(file_.replace_start(header()));
  return file_.finish();
}

}  // namespace forestvm::cli
