// Rows of Arrow's C stream and C data interfaces, from any library that has them.
#pragma once

#include "bindings/python/core/python.hpp"

#include "bindings/python/core/arguments.hpp"
#include "bindings/python/core/forest.hpp"

namespace forestvm::python {

/// Returns whether the object's type appears to be the one that predict_arrow read last, which saves a look-up of its
/// methods. If it is another type, predict_arrow raises AttributeError.
bool is_known_arrow(PyObject* object);

/// Predicts rows that give Arrow's arrays, chunk by chunk. Returns the array of the predictions, or null with a Python
/// exception set.
PyObject* predict_arrow(PyObject* self, Output output, const Arguments& given);

}  // namespace forestvm::python
