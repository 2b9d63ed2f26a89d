// See rows.hpp.
#include "bindings/c/rows.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>

#include "bindings/c/structs.hpp"

namespace forestvm::c_api {
namespace {

/// A field of fvm_rows that only some kinds use; `kinds` has the bit 1 << kind for each of those.
struct RowsField {
  const char* name;
  std::size_t offset, size;
  unsigned kinds;
};
constexpr unsigned kDense = 1u << FVM_ROWS_DENSE, kCsr = 1u << FVM_ROWS_CSR,
                   kEncoded = 1u << FVM_ROWS_ENCODED, kDevice = 1u << FVM_ROWS_DEVICE;
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
    FVM_ROWS_FIELD(hashed, kDense | kCsr),
};
#undef FVM_ROWS_FIELD

/// Returns Usage if a field is set that this kind of rows does not use: a mistake that must not pass
/// unnoticed.
Result<void> check_unused_fields(const fvm_rows& rows) {
  static constexpr const char* kKinds[] = {"dense", "CSR", "encoded", "device"};
  static constexpr unsigned char kZeros[sizeof(std::uint64_t)] = {};
  for (const RowsField& field : kRowsFields) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&rows) + field.offset;
    if ((field.kinds >> rows.kind & 1) == 0 && std::memcmp(bytes, kZeros, field.size) != 0)
      return usage(std::string("rows.") + field.name + " is set, which " + kKinds[rows.kind] +
                   " rows do not have");
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
  return usage(std::string("rows.") + name + " is " + std::to_string(stride) +
               ": negative strides are not supported");
}

Result<bool> known_hashed(const fvm_rows& rows) {
  if (rows.hashed == 0 || rows.hashed == 1) return rows.hashed == 1;
  return usage("rows.hashed is " + std::to_string(rows.hashed) + ", not 0 or 1");
}

/// Returns the matrix that dense rows describe, with defaults filled in.
Result<RowBlock> known_block(const fvm_rows& rows, std::size_t num_features) {
  FVM_ASSIGN(const RowType type, row_type(rows));
  FVM_TRY(check_stride("row_stride", rows.row_stride));
  FVM_TRY(check_stride("column_stride", rows.column_stride));
  if (rows.row_count > 1 && rows.row_stride == 0 && rows.column_stride > 1)
    return usage("rows.row_stride is 0 and rows.column_stride is " + std::to_string(rows.column_stride) +
                 ": only contiguous rows have a default");
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
    return usage("rows.absent is " + std::to_string(rows.absent) +
                 ", not FVM_ABSENT_MISSING or FVM_ABSENT_ZERO");
  FVM_ASSIGN(const bool hashed, known_hashed(rows));
  return AnyRows(CsrRows{rows.row_count, rows.offsets, rows.columns, rows.data, rows.value_count,
                         rows.absent == FVM_ABSENT_ZERO ? Absent::Zero : Absent::Missing, type, hashed});
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
  return usage(std::string(name) + " is " + std::to_string(type) + ", which is no fvm_type");
}

Result<AnyRows> known_rows(const fvm_rows* given, std::size_t num_features) {
  if (given == nullptr) return usage("the rows are null");
  FVM_ASSIGN(const fvm_rows rows, known_fields(given, "rows", "fvm_rows", "FVM_ROWS_INIT"));
  if (rows.kind < FVM_ROWS_DENSE || rows.kind > FVM_ROWS_DEVICE)
    return usage("rows.kind is " + std::to_string(rows.kind) +
                 ", not FVM_ROWS_DENSE, FVM_ROWS_CSR, FVM_ROWS_ENCODED or FVM_ROWS_DEVICE");
  FVM_TRY(check_unused_fields(rows));
  if (rows.kind == FVM_ROWS_ENCODED)
    return AnyRows(CodedRows{static_cast<const std::uint8_t*>(rows.data), rows.row_count, rows.column_count,
                             rows.byte_count, rows.encoder});
  if (rows.column_count != 0 && rows.column_count != num_features)
    return usage("rows of " + std::to_string(rows.column_count) + " values for a model of " +
                 std::to_string(num_features) + " features");
  if (rows.kind == FVM_ROWS_CSR) return known_csr(rows);
  return rows.kind == FVM_ROWS_DENSE ? known_dense(rows, num_features) : known_device(rows, num_features);
}

}  // namespace forestvm::c_api
