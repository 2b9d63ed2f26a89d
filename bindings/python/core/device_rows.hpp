// Reads the descriptions that DLPack gives of arrays, in any memory.
#pragma once

#include "bindings/python/core/python.hpp"

namespace forestvm::python {

/// Implements read_dlpack(capsule): returns (address, shape, strides in numbers or None, type as NumPy writes it,
/// DLPack's number of the kind of memory, ordinal of the device, whether it is read-only). The capsule stays as it is,
/// and keeps the memory alive.
PyObject* read_dlpack(PyObject* module, PyObject* capsule);

}  // namespace forestvm::python
