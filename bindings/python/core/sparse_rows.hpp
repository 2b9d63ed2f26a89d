// Sparse rows in NumPy arrays, as SciPy's CSR has them.
#pragma once

#include "bindings/python/core/python.hpp"

#include <forestvm/backend.hpp>

namespace forestvm::python {

/// Views of the arrays of sparse rows.
class SparseRows {
 public:
  /// Opens int64 offsets, int32 columns and values. Returns false with a Python exception set if they are others.
  bool open(PyObject* offsets, PyObject* columns, PyObject* values, bool absent_is_zero);

  /// Returns the rows, which refer to the arrays.
  const CsrRows& rows() const { return rows_; }

 private:
  Buffer offsets_, columns_, values_;
  CsrRows rows_;
};

}  // namespace forestvm::python
