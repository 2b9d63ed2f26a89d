// The module forestvm._core.
#include "bindings/python/core/python.hpp"

#include <cstring>
#include <limits>

#include <forestvm/backend.hpp>

#include "bindings/python/core/arguments.hpp"
#include "bindings/python/core/attributes.hpp"
#include "bindings/python/core/device_rows.hpp"
#include "bindings/python/core/encoded_rows.hpp"
#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/forest.hpp"
#include "bindings/python/core/numpy.hpp"
#include "bindings/python/core/proximity.hpp"

namespace {

using namespace forestvm;
using namespace forestvm::python;

/// Implements is_direct(array, features): returns whether Forest.predict reads rows in this NumPy array where they lie.
PyObject* is_direct(PyObject*, PyObject* args) {
  PyObject* array = nullptr;
  Py_ssize_t features = 0;
  if (PyArg_ParseTuple(args, "On", &array, &features) == 0) return nullptr;
  if (!is_array(array)) Py_RETURN_FALSE;
  Buffer buffer;
  if (!open_array(buffer, array, PyBUF_STRIDES | PyBUF_FORMAT)) {
    PyErr_Clear();
    Py_RETURN_FALSE;
  }
  return PyBool_FromLong(rows_in_place(*buffer, static_cast<std::size_t>(features)).has_value());
}

/// Implements has_large(array): returns whether a float64 matrix has a number of at least 2^53 in size.
PyObject* has_large(PyObject*, PyObject* array) {
  Buffer buffer;
  if (!buffer.open(array, PyBUF_STRIDES | PyBUF_FORMAT)) return nullptr;
  if (buffer->ndim != 2 || row_type_of(*buffer) != RowType::Float64)
    return raise(usage("expected a matrix of float64"));
  constexpr double kExact = 9007199254740992.0;
  const auto* row = static_cast<const char*>(buffer->buf);
  for (Py_ssize_t i = 0; i < buffer->shape[0]; ++i, row += buffer->strides[0]) {
    const char* at = row;
    for (Py_ssize_t j = 0; j < buffer->shape[1]; ++j, at += buffer->strides[1]) {
      double number = 0;
      std::memcpy(&number, at, sizeof number);
      if (number >= kExact || number <= -kExact) Py_RETURN_TRUE;
    }
  }
  Py_RETURN_FALSE;
}

/// Implements limit_threads(limit): see forestvm/backend.hpp.
PyObject* set_thread_limit(PyObject*, PyObject* limit) {
  const long threads = PyLong_AsLong(limit);
  if (threads == -1 && PyErr_Occurred() != nullptr) return nullptr;
  if (threads < 0 || threads > std::numeric_limits<int>::max())
    return raise(usage("expected a number of threads"));
  limit_threads(static_cast<unsigned>(threads));
  Py_RETURN_NONE;
}

/// Implements thread_limit().
PyObject* get_thread_limit(PyObject*, PyObject*) { return PyLong_FromUnsignedLong(thread_limit()); }

PyMethodDef functions[] = {
    {"has_large", has_large, METH_O, nullptr},
    {"is_direct", is_direct, METH_VARARGS, nullptr},
    {"limit_threads", set_thread_limit, METH_O, nullptr},
    {"read_dlpack", read_dlpack, METH_O, nullptr},
    {"share_leaves", share_leaves, METH_VARARGS, nullptr},
    {"thread_limit", get_thread_limit, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

int add_type(PyObject* module, const char* name, PyObject* type) {
  const Ref owned = Ref::take(type);
  return owned ? PyModule_AddObjectRef(module, name, type) : -1;
}

int execute(PyObject* module) {
  if (!find_error_classes() || !find_numpy() || !make_argument_names() || !make_attribute_names()) return -1;
  if (add_type(module, "Forest", make_forest_type(module)) != 0) return -1;
  if (add_type(module, "EncodedRows", make_encoded_rows_type(module)) != 0) return -1;
  return PyModule_AddStringConstant(module, "__version__", FORESTVM_VERSION);
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(execute)},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "forestvm._core", nullptr, 0, functions, slots, nullptr, nullptr, nullptr};

}  // namespace

/// Identifies this library for threadpoolctl, which looks for a symbol because other libraries are called _core too.
extern "C" [[gnu::visibility("default")]] const char forestvm_python_version[] = FORESTVM_VERSION;

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&definition); }
