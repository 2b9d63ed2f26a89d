// See predictions.hpp.
#include "cli/io/predictions.hpp"

#include <string_view>
#include <type_traits>
#include <utility>

#include "cli/io/csv.hpp"
#include "cli/io/npy.hpp"

namespace forestvm::cli {
namespace {

constexpr std::string_view dtype(PredictionForm::Type type) {
  switch (type) {
    case PredictionForm::Type::Float32:
      return "<f4";
    case PredictionForm::Type::Float64:
      return "<f8";
    case PredictionForm::Type::Int32:
      return "<i4";
    case PredictionForm::Type::Int64:
      return "<i8";
  }
  return {};
}

template <class T>
void append_cell(std::string& text, T value, std::span<const std::string> labels) {
  if constexpr (std::is_integral_v<T>) {
    const auto index = static_cast<std::size_t>(value);
    if (value >= 0 && index < labels.size()) return append_text(text, labels[index]);
    append_number(text, std::int64_t{value});
  } else {
    append_number(text, value);
  }
}

}  // namespace

Result<PredictionWriter> PredictionWriter::open(const std::string& path, const PredictionForm& form) {
  FVM_ASSIGN(OutputFile file, OutputFile::open(path));
  PredictionWriter writer(std::move(file), form, path.ends_with(".npy"));
  // As long as the one that finish() writes over it.
  if (writer.npy_ && writer.file_.can_go_back()) FVM_TRY(writer.file_.write(writer.header()));
  return writer;
}

/// Of the NPY array that has been written.
std::string PredictionWriter::header() const {
  std::vector<std::size_t> shape = {written_ / form_.columns};
  if (form_.columns != 1 || form_.matrix) shape.push_back(form_.columns);
  return npy_header(dtype(form_.type), shape);
}

Result<void> PredictionWriter::write(const PredictionValues& values) {
  FVM_CHECK(values.index() == static_cast<std::size_t>(form_.type));
  return std::visit(
      [this](const auto& span) -> Result<void> {
        FVM_CHECK(span.size() % form_.columns == 0);
        written_ += span.size();
        if (npy_) {
          const auto bytes = std::as_bytes(span);
          const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          if (file_.can_go_back()) return file_.write(text);
          kept_ += text;
          return {};
        }
        std::string text;
        for (std::size_t i = 0; i < span.size(); ++i) {
          append_cell(text, span[i], form_.labels);
          text += (i + 1) % form_.columns == 0 ? '\n' : ',';
        }
        return file_.write(text);
      },
      values);
}

Result<void> PredictionWriter::finish() {
  if (npy_ && file_.can_go_back()) FVM_TRY(file_.replace_start(header()));
  if (npy_ && !file_.can_go_back()) {
    FVM_TRY(file_.write(header()));
    FVM_TRY(file_.write(kept_));
  }
  return file_.finish();
}

}  // namespace forestvm::cli
