// NumPy without its headers: the objects and the one C function that the extension calls, and arrays through Python's
// buffers.
#pragma once

#include "bindings/python/core/python.hpp"

#include <cstddef>
#include <optional>

#include <forestvm/backend.hpp>

namespace forestvm::python {

/// Finds NumPy's objects. Returns false with a Python exception set if that fails.
bool find_numpy();

/// Returns whether the object is an instance of numpy.ndarray itself, not of a class derived from it.
bool is_array(PyObject* object);

/// Opens a buffer as Buffer::open does. If this NumPy lays out the fields of arrays as all releases so far do, the
/// fields are read in memory, which takes a tenth of the time. The caller must hold a reference to `object` as long as
/// it uses the buffer.
bool open_array(Buffer& buffer, PyObject* object, int flags);

/// Returns a new array of rows x width numbers, or of rows numbers if `flat`; null with a Python exception set.
Ref new_array(std::size_t rows, std::size_t width, bool flat, ResultType type);

/// Returns numpy.dtype(dtype) as a type of predictions; nothing, with a Python exception set, if predictions cannot
/// have it.
std::optional<ResultType> result_type_of(PyObject* dtype);

/// Returns the type of a buffer's numbers; nothing if neither rows nor predictions may have it.
std::optional<RowType> row_type_of(const Py_buffer& view);
std::optional<ResultType> result_type_of(const Py_buffer& view);

/// Describes `view`, a matrix with `num_features` columns, where it lies. Returns nothing if it has another shape, a
/// type that rows do not have, or strides that they cannot have: such rows are copied first.
std::optional<RowBlock> rows_in_place(const Py_buffer& view, std::size_t num_features);

/// Returns a view's numbers as a vector that lies in one piece; nothing if they do not.
std::optional<RowBlock> row_in_place(const Py_buffer& view, std::size_t num_features);

}  // namespace forestvm::python
