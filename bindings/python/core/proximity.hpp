// The proximity of rows, from their leaf numbers.
#pragma once

#include "bindings/python/core/python.hpp"

namespace forestvm::python {

/// Implements share_leaves(leaves, others, out, rows): writes the counts of shared leaves, or their weights if `out`
/// holds float64, to `out`, an array (n, others). `others` is None if the rows are compared with one another. If
/// `rows`, an array (n, top) of int64, is not None, it gets the nearest rows, and `out` their counts or weights.
PyObject* share_leaves(PyObject* module, PyObject* args);

}  // namespace forestvm::python
