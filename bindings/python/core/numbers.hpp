// Numbers of Python.
#pragma once

#include "bindings/python/core/python.hpp"

#include <optional>

namespace forestvm::python {

/// Reads a Python number, or None for a missing value. Returns nothing for other objects and for integers that float64
/// cannot represent; no Python exception is set.
std::optional<double> number_in(PyObject* object);

}  // namespace forestvm::python
