// See sparse_rows.hpp.
#include "bindings/python/core/sparse_rows.hpp"

#include <cstddef>
#include <cstdint>

#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/numpy.hpp"

namespace forestvm::python {

bool SparseRows::open(PyObject* offsets, PyObject* columns, PyObject* values, bool absent_is_zero) {
  constexpr int kFlags = PyBUF_ND | PyBUF_FORMAT;
  if (!offsets_.open(offsets, kFlags) || !columns_.open(columns, kFlags) || !values_.open(values, kFlags))
    return false;
  const auto type = row_type_of(*values_);
  if (!type || row_type_of(*offsets_) != RowType::Int64 || row_type_of(*columns_) != RowType::Int32 ||
      offsets_->len == 0 || columns_->shape[0] != values_->shape[0])
    return raise(usage("sparse rows: wrong types or lengths")) != nullptr;
  rows_.count = static_cast<std::size_t>(offsets_->shape[0]) - 1;
  rows_.offsets = static_cast<const std::int64_t*>(offsets_->buf);
  rows_.columns = static_cast<const std::int32_t*>(columns_->buf);
  rows_.values = values_->buf;
  rows_.value_count = static_cast<std::size_t>(values_->shape[0]);
  rows_.absent = absent_is_zero ? Absent::Zero : Absent::Missing;
  rows_.type = *type;
  return true;
}

}  // namespace forestvm::python
