// Resolves the rows of a call: see forestvm/internal/row_source.hpp.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <variant>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/column_set.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/internal/row_source.hpp>

#include "vm/call/read_column.hpp"
#include "vm/call/sorted.hpp"

namespace forestvm {
namespace {

/// The least number of features for which it pays to find those that the program reads.
constexpr std::uint32_t kManyFeatures = 64;

/// Sets `numbers` to the number of values from the first to the last of `count` values that are `stride` apart,
/// both included. Returns whether a size_t is too small for it.
bool span(std::size_t count, std::size_t stride, std::size_t& numbers) {
  if (count == 0) return false;
  return __builtin_mul_overflow(count - 1, stride, &numbers) || __builtin_add_overflow(numbers, 1, &numbers);
}

/// Checks that rows are as long as the model needs, do not overlap, and end inside the address space.
Result<void> check_extent(const RowBlock& rows, std::uint32_t num_features) {
  if (rows.count == 0) return {};
  if (rows.column_stride == 1 && rows.stride < num_features)
    return usage("rows of {} values for a model of {} features", rows.stride, num_features);
  std::size_t row_span = 0, column_span = 0, values = 0;
  const bool too_many = span(num_features, rows.column_stride, row_span) ||
                        span(rows.count, rows.stride, column_span) ||
                        __builtin_add_overflow(row_span, column_span, &values) ||
                        values > static_cast<std::size_t>(PTRDIFF_MAX) / bytes_of(rows.type);
  if (too_many)
    return usage("{} rows, {} numbers apart, are more than memory holds", rows.count, rows.stride);
  const bool apart = rows.stride >= row_span || rows.column_stride >= column_span;
  const bool repeated = rows.stride == 0 || rows.column_stride == 0;
  if (num_features != 0 && (repeated || !apart))
    return usage("rows {} numbers apart overlap, if their columns are {} apart", rows.stride,
                 rows.column_stride);
  return rows.data == nullptr ? no_buffer() : Result<void>();
}

/// Returns the features, ascending, that the encoder and linear leaves of a program read.
[[gnu::cold]] std::vector<std::uint32_t> find_features_in_place(const Program& program) {
  std::vector<std::uint32_t> features;
  for (const EncodedFeature& feature : program.encoded_features()) features.push_back(feature.feature);
  for (const CategoryColumn& column : program.category_columns()) features.push_back(column.feature);
  for (const LeafTerm& term : program.leaf_terms()) features.push_back(term.feature);
  sort_unique(features);
  std::erase_if(features, [&](std::uint32_t f) { return f >= program.meta().num_features; });
  return features;
}

/// Returns the numbers from 0 to count - 1.
std::vector<std::uint32_t> first_numbers(std::uint32_t count) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

Failure wrong_column(std::uint32_t column, std::string_view what) {
  return fail(ErrorCode::Usage, formatted("column {}", column), what);
}

bool is_integer(RowType type) {
  return type != RowType::Float16 && type != RowType::Float32 && type != RowType::Float64 &&
         type != RowType::Bool;
}

}  // namespace

Failure no_buffer() { return usage("a pointer of the rows, or the output, is null"); }

[[gnu::cold]] RowReader::RowReader(const Program& program, RoundFunction round, std::optional<int> device,
                                   bool rounds_runs)
    : program_(program),
      meta_(program_.meta()),
      rules_(program, round),
      coded_plans_(program),
      features_in_place_(find_features_in_place(program)),
      device_(device),
      rounds_runs_(rounds_runs) {
  // A short list is made now, so that no later call allocates it. std::call_once, below, would take an exception for
  // lack of memory through the C library, which ends the process if it needs memory itself for that.
  if (meta_.num_features < kManyFeatures) features_converted_ = first_numbers(meta_.num_features);
}

Result<RowSource> RowReader::resolve(const AnyRows& rows) const {
  FVM_ASSIGN(const RowForm form, std::visit([&](const auto& given) { return form_of(given); }, rows));
  return RowSource(*this, rows, form);
}

Result<RowSource> RowReader::resolve_to_encode(const AnyRows& rows, std::size_t room) const {
  if (std::holds_alternative<CodedRows>(rows)) return usage("the rows are encoded already");
  FVM_TRY(coded_plans_.check());
  FVM_TRY(coded_plans_.check_room(row_count(rows), room));
  return resolve(rows);
}

Result<RowForm> RowReader::form_of(const RowBlock& rows) const {
  FVM_TRY(check_extent(rows, meta_.num_features));
  const bool plain = rows.type == RowType::Float32 && rows.column_stride == 1 && !rules_.change_float32();
  if (plain) return RowForm::Plain;
  if (!rules_.columns().empty()) return RowForm::Dense;
  if (rows.type == RowType::Float64 && rows.column_stride == 1 && rules_.wide()) return RowForm::Doubles;
  return rows.stride == 1 ? RowForm::Columns : RowForm::Dense;
}

bool RowReader::reads(std::uint32_t feature) const {
  std::call_once(features_read_once_, [&] { features_read_ = features_read(program_); });
  return features_read_[feature];
}

std::span<const std::uint32_t> RowReader::features_converted(bool float64_runs) const {
  if (meta_.num_features < kManyFeatures) return features_converted_;
  std::call_once(features_converted_once_, [&] {
    std::vector<std::uint32_t>& features = features_converted_;
    features = first_numbers(meta_.num_features);
    if (!rules_.wide()) return;
    const auto not_read = [this](std::uint32_t feature) { return !reads(feature); };
    const auto unread = std::count_if(features.begin(), features.end(), not_read);
    // Reading values that lie apart takes twice as long, so it pays only if less than half of the features are
    // read.
    if (static_cast<std::size_t>(unread) * 2 > features.size()) std::erase_if(features, not_read);
    // Functions that round runs in vectors take less time for four values than for picking one.
    if (rounds_runs_ && features.size() * 4 > meta_.num_features)
      all_features_ = first_numbers(meta_.num_features);
  });
  return float64_runs && !all_features_.empty() ? all_features_ : features_converted_;
}

Result<void> RowReader::check_column(const Column& column, std::uint32_t feature,
                                     const ColumnRows& rows) const {
  if (column.form == ColumnForm::Missing) {
    if (column.values == nullptr) return {};
    return wrong_column(feature, "has values, although all of it is declared missing");
  }
  const bool text = is_text(column);
  if (text && (rows.texts == nullptr || !rows.texts->takes(feature)))
    return wrong_column(feature, "holds texts, and the model has no names of categories for this feature");
  if (column.form == ColumnForm::Text && column.type != RowType::Int32 && column.type != RowType::Int64)
    return wrong_column(feature, "holds texts, whose offsets must be int32 or int64");
  if (column.form == ColumnForm::Indices && !is_integer(column.type))
    return wrong_column(feature, "has a dictionary, whose indices must be integers");
  if (column.offset > kMaxColumnValues || rows.count > kMaxColumnValues - column.offset)
    return wrong_column(feature, formatted("begins at value {}: {} more are more than memory holds",
                                           column.offset, rows.count));
  if (rows.count == 0) return {};
  const bool dictionary = column.form == ColumnForm::Indices && column.category_count != 0;
  if (column.values == nullptr && reads(feature))
    return wrong_column(feature, "its values are null, and the model reads this feature");
  if (dictionary && column.categories == nullptr) return wrong_column(feature, "its dictionary is null");
  return {};
}

Result<RowForm> RowReader::form_of(const ColumnRows& rows) const {
  if (rows.columns.size() != meta_.num_features)
    return usage("{} columns for a model of {} features", rows.columns.size(), meta_.num_features);
  bool texts = false;
  for (std::uint32_t feature = 0; feature < meta_.num_features; ++feature) {
    FVM_TRY(check_column(rows.columns[feature], feature, rows));
    texts = texts || is_text(rows.columns[feature]);
  }
  return texts || !rules_.columns().empty() ? RowForm::Dense : RowForm::Columns;
}

Result<RowForm> RowReader::form_of(const CsrRows& rows) {
  const bool no_values = rows.value_count != 0 && (rows.columns == nullptr || rows.values == nullptr);
  if (rows.count != 0 && (rows.offsets == nullptr || no_values)) return no_buffer();
  return RowForm::Sparse;
}

Result<RowForm> RowReader::form_of(const CodedRows& rows) const {
  FVM_TRY(coded_plans_.check(rows));
  return RowForm::Encoded;
}

Result<RowForm> RowReader::form_of(const DeviceRows& rows) const {
  if (!device_)
    return usage(
        "the rows lie in a GPU's memory, which the host does not read: load the program into the GPU");
  if (rows.device != *device_)
    return usage("the rows are on device {}, the program is on device {}", rows.device, *device_);
  if (!rules_.columns().empty())
    return refused(
        "rows",
        "lie on the device, and this model's derived columns (lookups, computed columns) are computed by the "
        "host: pass rows of the host");
  if (rules_.change_float32())
    return refused(
        "rows",
        "lie on the device, and this model's zeros are missing values or its thresholds closer than "
        "float32 numbers, which the host sees to: pass rows of the host");
  FVM_TRY(check_extent({rows.data, rows.count, rows.stride}, meta_.num_features));
  return RowForm::OnDevice;
}

}  // namespace forestvm
