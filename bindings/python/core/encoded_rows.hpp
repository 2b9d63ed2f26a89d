// The type EncodedRows of Python: rank codes of rows, which predictions take instead of the rows.
#pragma once

#include "bindings/python/core/python.hpp"

#include <optional>

#include <forestvm/backend.hpp>

namespace forestvm::python {

/// Makes the type. Returns null with a Python exception set if that fails.
PyObject* make_encoded_rows_type(PyObject* module);

/// Returns the rows of an instance of the type; nothing for other objects.
std::optional<CodedRows> coded_rows(PyObject* object);

/// Forest._encode(encoded, rows, begin): encodes rows in a NumPy array, or sparse rows as _predict_csr takes them in a
/// tuple (offsets, columns, values, absent_is_zero), as the rows of `encoded` from `begin` on, which is a multiple of
/// 64.
PyObject* fill_encoded_rows(PyObject* self, PyObject* args);

/// Forest._encode_arrow(X, missing, columns, extra): returns the rows of an object of Arrow as EncodedRows.
PyObject* encode_arrow(PyObject* self, PyObject* args);

}  // namespace forestvm::python
