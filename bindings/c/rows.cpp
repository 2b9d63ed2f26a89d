// See rows.hpp.
#include "bindings/c/rows.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>

#include "bindings/c/structs.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::c_api {
namespace {

/// A field of fvm_rows that only some kinds use; `kinds` has the bit 1 << kind for each kind that uses it.
struct RowsField {
  const char* name;
  std::size_t offset, size;
  unsigned kinds;
};
constexpr unsigned kDense = 1u << FVM_ROWS_DENSE, kCsr = 1u << FVM_ROWS_CSR,
                   kEncoded = 1u << FVM_ROWS_ENCODED, kDevice = 1u << FVM_ROWS_DEVICE,
                   kColumns = 1u << FVM_ROWS_COLUMNS, kArrow = 1u << FVM_ROWS_ARROW;
#define FVM_ROWS_FIELD(name, kinds) \
  RowsField { #name, offsetof(fvm_rows, name), sizeof(fvm_rows::name), kinds }
constexpr RowsField kRowsFields[] = {
    FVM_ROWS_FIELD(type, kDense | kCsr | kDevice),
    FVM_ROWS_FIELD(row_stride, kDense | kDevice),
    FVM_ROWS_FIELD(column_stride, kDense | kDevice),
    FVM_ROWS_FIELD(offsets, kCsr),
    FVM_ROWS_FIELD(columns, kCsr),
    FVM_ROWS_FIELD(value_count, kCsr),
    FVM_ROWS_FIELD(absent, kCsr),
    FVM_ROWS_FIELD(device, kDevice),
    FVM_ROWS_FIELD(stream, kDevice),
    FVM_ROWS_FIELD(byte_count, kEncoded),
    FVM_ROWS_FIELD(encoder, kEncoded),
    FVM_ROWS_FIELD(hashed, kDense | kCsr | kColumns),
    FVM_ROWS_FIELD(extra, kArrow),
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the field is a pointer, and its own bytes are compared.
    FVM_ROWS_FIELD(schema, kArrow),
};
#undef FVM_ROWS_FIELD

/// Returns Usage if a field is set that this kind of rows does not use: a mistake that must not pass
/// unnoticed.
Result<void> check_unused_fields(const fvm_rows& rows) {
  static constexpr const char* kKinds[] = {"dense", "CSR", "encoded", "device", "column", "Arrow"};
  static constexpr unsigned char kZeros[sizeof(std::uint64_t)] = {};
  for (const RowsField& field : kRowsFields) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&rows) + field.offset;
    if ((field.kinds >> rows.kind & 1) == 0 && std::memcmp(bytes, kZeros, field.size) != 0)
      return usage("rows.{} is set, which {} rows do not have", field.name, kKinds[rows.kind]);
  }
  return {};
}

/// Lists the types of rows in the order of fvm_type.
constexpr RowType kRowTypes[] = {RowType::Float32, RowType::Float64, RowType::Float16, RowType::Int8,
                                 RowType::Int16,   RowType::Int32,   RowType::Int64,   RowType::UInt8,
                                 RowType::UInt16,  RowType::UInt32,  RowType::UInt64,  RowType::Bool};
static_assert(std::size(kRowTypes) == FVM_TYPE_BOOL + 1);

Result<RowType> row_type(const fvm_rows& rows) {
  FVM_TRY(check_type("rows.type", rows.type));
  return kRowTypes[rows.type];
}

Result<void> check_stride(const char* name, std::ptrdiff_t stride) {
  if (stride >= 0) return {};
  return usage("rows.{} is {}: negative strides are not supported", name, stride);
}

Result<bool> known_hashed(const fvm_rows& rows) {
  if (rows.hashed == 0 || rows.hashed == 1) return rows.hashed == 1;
  return usage("rows.hashed is {}, not 0 or 1", rows.hashed);
}

/// Returns the matrix that dense rows describe, with defaults filled in.
Result<RowBlock> known_block(const fvm_rows& rows, std::size_t num_features) {
  FVM_ASSIGN(const RowType type, row_type(rows));
  FVM_TRY(check_stride("row_stride", rows.row_stride));
  FVM_TRY(check_stride("column_stride", rows.column_stride));
  if (rows.row_count > 1 && rows.row_stride == 0 && rows.column_stride > 1)
    return usage("rows.row_stride is 0 and rows.column_stride is {}: only contiguous rows have a default",
                 rows.column_stride);
  RowBlock block{rows.data, rows.row_count, num_features, type};
  if (rows.column_stride != 0) block.column_stride = static_cast<std::size_t>(rows.column_stride);
  if (rows.row_stride != 0) block.stride = static_cast<std::size_t>(rows.row_stride);
  // The stride of a single row is never used, so any is accepted: NumPy does not define it either.
  if (rows.row_count == 1 && __builtin_mul_overflow(num_features, block.column_stride, &block.stride))
    block.stride = std::numeric_limits<std::size_t>::max();
  return block;
}

Result<AnyRows> known_dense(const fvm_rows& rows, std::size_t num_features) {
  FVM_ASSIGN(RowBlock block, known_block(rows, num_features));
  FVM_ASSIGN(block.hashed, known_hashed(rows));
  return AnyRows(block);
}

Result<AnyRows> known_csr(const fvm_rows& rows) {
  FVM_ASSIGN(const RowType type, row_type(rows));
  if (rows.absent != FVM_ABSENT_MISSING && rows.absent != FVM_ABSENT_ZERO)
    return usage("rows.absent is {}, not FVM_ABSENT_MISSING or FVM_ABSENT_ZERO", rows.absent);
  FVM_ASSIGN(const bool hashed, known_hashed(rows));
  return AnyRows(CsrRows{rows.row_count, rows.offsets, rows.columns, rows.data, rows.value_count,
                         rows.absent == FVM_ABSENT_ZERO ? Absent::Zero : Absent::Missing, type, hashed});
}

Failure wrong_column(std::size_t column, std::string_view what) {
  return fail(ErrorCode::Usage, formatted("column {}", column), what);
}

Result<Column> known_column(const fvm_column& given, std::size_t number) {
  Column column{.values = given.values, .validity = given.validity, .offset = given.offset};
  if (given.type == FVM_TYPE_BIT) {
    column.form = ColumnForm::Bits;
  } else {
    const auto type = check_type("type", given.type);
    if (!type) return wrong_column(number, type.error().message);
    column.type = kRowTypes[given.type];
  }
  if (given.categories == nullptr) {
    if (given.category_count == 0) return column;
    return wrong_column(number,
                        formatted("category_count is {}, and there are no categories", given.category_count));
  }
  if (column.form == ColumnForm::Bits)
    return wrong_column(number, "has a dictionary, whose indices must be integers");
  column.form = ColumnForm::Indices;
  column.negative_is_missing = true;
  column.categories = given.categories;
  column.category_count = given.category_count;
  return column;
}

Result<AnyRows> known_columns(const fvm_rows& rows, std::size_t num_features, ColumnMemory& memory) {
  if (rows.data == nullptr && rows.row_count != 0 && num_features != 0) return usage("the columns are null");
  FVM_ASSIGN(const bool hashed, known_hashed(rows));
  memory.columns.assign(num_features, Column());
  const auto* at = static_cast<const unsigned char*>(rows.data);
  for (std::size_t i = 0; at != nullptr && i < num_features; ++i) {
    const auto* const given = reinterpret_cast<const fvm_column*>(at);
    const auto known = known_fields(given, "column", "fvm_column", "FVM_COLUMN_INIT");
    if (!known) return wrong_column(i, known.error().message);
    FVM_ASSIGN(memory.columns[i], known_column(*known, i));
    if (known->size != static_cast<const fvm_column*>(rows.data)->size)
      return wrong_column(i, formatted("its size is {}, the first column's is another", known->size));
    at += known->size;
  }
  return AnyRows(ColumnRows{.count = rows.row_count, .columns = memory.columns, .hashed = hashed});
}

Result<AnyRows> known_device(const fvm_rows& rows, std::size_t num_features) {
  FVM_ASSIGN(const RowBlock block, known_block(rows, num_features));
  if (block.type != RowType::Float32 || block.column_stride != 1)
    return refused("rows", "lie on the device, where they are read as they are: row-major FVM_TYPE_FLOAT32");
  return AnyRows(DeviceRows{static_cast<const float*>(rows.data), rows.row_count, block.stride, rows.device,
                            rows.stream});
}

}  // namespace

Result<void> check_type(const char* name, fvm_type type) {
  if (type >= FVM_TYPE_FLOAT32 && type <= FVM_TYPE_BOOL) return {};
  return usage("{} is {}, which is not an fvm_type that is allowed here", name, type);
}

std::optional<std::uint32_t> Names::feature(std::string_view name) const {
  std::call_once(features_made_, [&] {
    for (std::uint32_t i = 0; i < program_.meta().num_feature_names; ++i)
      features_.emplace(program_.feature_name(i), i);
  });
  const auto at = features_.find(name);
  return at == features_.end() ? std::nullopt : std::optional(at->second);
}

const CategoryTexts& Names::categories() const {
  std::call_once(categories_made_, [&] { categories_.emplace(program_); });
  return *categories_;
}

Result<AnyRows> known_rows(const fvm_rows* given, const Names& names, ColumnMemory& memory) {
  const std::size_t num_features = names.program().meta().num_features;
  if (given == nullptr) return usage("the rows are null");
  FVM_ASSIGN(const fvm_rows rows, known_fields(given, "rows", "fvm_rows", "FVM_ROWS_INIT"));
  if (rows.kind < FVM_ROWS_DENSE || rows.kind > FVM_ROWS_ARROW)
    return usage(
        "rows.kind is {}, not FVM_ROWS_DENSE, FVM_ROWS_CSR, FVM_ROWS_ENCODED, "
        "FVM_ROWS_DEVICE, FVM_ROWS_COLUMNS or FVM_ROWS_ARROW",
        rows.kind);
  FVM_TRY(check_unused_fields(rows));
  if (rows.kind == FVM_ROWS_ENCODED)
    return AnyRows(CodedRows{static_cast<const std::uint8_t*>(rows.data), rows.row_count, rows.column_count,
                             rows.byte_count, rows.encoder});
  if (rows.kind == FVM_ROWS_ARROW) return known_arrow(rows, names, memory);
  if (rows.column_count != 0 && rows.column_count != num_features)
    return usage("rows of {} values for a model of {} features", rows.column_count, num_features);
  if (rows.kind == FVM_ROWS_CSR) return known_csr(rows);
  if (rows.kind == FVM_ROWS_COLUMNS) return known_columns(rows, num_features, memory);
  return rows.kind == FVM_ROWS_DENSE ? known_dense(rows, num_features) : known_device(rows, num_features);
}

}  // namespace forestvm::c_api
