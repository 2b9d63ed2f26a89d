// See margins.hpp.
#include "cli/margins.hpp"

#include <cmath>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "cli/io/gzip_source.hpp"
#include "cli/io/npy.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

std::string shape_text(const std::string& rows, std::size_t columns) {
  return formatted("({}, {})", rows, columns);
}

}  // namespace

constinit const Option kBaseMarginOption = {
    "base-margin", '\0', "M.npy",
    "starts each row's sums from margins of its own instead of the model's base scores (XGBoost's base_margin, "
    "LightGBM's init_score): an array of shape (rows,) or (rows, outputs)",
    kFiles};

Result<Margins> Margins::open(const std::string& path, const Program& program) {
  FVM_ASSIGN(Source opened, in_file(path, open_unpacked(path)));
  auto source = std::make_unique<Source>(std::move(opened));
  RowForm form;
  form.wide = true;
  FVM_ASSIGN(std::unique_ptr<TableReader> table,
             in_file(path, npy_reader(*source, NpyShape::VectorOrMatrix, form)));
  const std::size_t outputs = program.meta().num_outputs;
  if (table->columns() != outputs)
    return in_file(path,
                   refused(formatted("has margins of shape {}, the raw scores have the shape {}",
                                     shape_text(std::to_string(table->rows().value_or(0)), table->columns()),
                                     shape_text("rows", outputs))));
  return Margins(path, program.meta().score_type, std::move(source), std::move(table));
}

Error Margins::wrong_rows(std::size_t rows, const char* what) const {
  return in_file(path_,
                 refused(formatted("has margins of shape {}, the raw scores of the rows{} have the shape {}",
                                   shape_text(std::to_string(table_->rows().value_or(0)), table_->columns()),
                                   what, shape_text(std::to_string(rows), table_->columns()))));
}

Result<BaseMargin> Margins::next(std::size_t count) {
  FVM_TRY(in_file(path_, table_->read(count, block_)));
  if (block_.count != count) return wrong_rows(before_ + count, " so far");
  const bool wide = score_type_ == ScalarType::Float64;
  for (std::size_t i = 0; i < count * block_.width; ++i) {
    const double margin = block_.value(i);
    if (wide ? std::isfinite(margin) : std::isfinite(static_cast<float>(margin))) continue;
    return in_file(path_, refused(formatted("row {}", before_ + i / block_.width),
                                  std::isfinite(margin) ? "a margin beyond float32, in which the model sums"
                                                        : "a margin that is not finite"));
  }
  before_ += count;
  const RowBlock block = block_.block();
  return BaseMargin{block.data, count, block_.width, block.type == RowType::Float64};
}

Result<void> Margins::finish() const {
  if (table_->rows() == before_) return {};
  return wrong_rows(before_, "");
}

}  // namespace forestvm::cli
