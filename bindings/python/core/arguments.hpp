// The arguments of calls that predict.
#pragma once

#include "bindings/python/core/python.hpp"

#include "bindings/python/core/forest.hpp"

namespace forestvm::python {

/// The arguments of a method that predicts, as the caller gave them; null for those that it omitted.
struct Arguments {
  PyObject* rows = nullptr;
  PyObject* output = nullptr;
  PyObject* out = nullptr;
  PyObject* dtype = nullptr;
  PyObject* missing = nullptr;
  PyObject* columns = nullptr;
  PyObject* extra = nullptr;
  PyObject* base_margin = nullptr;
  PyObject* early_stop = nullptr;
};

/// Makes the texts with which names of arguments are compared. Returns false with a Python exception set if that fails.
bool make_argument_names();

/// The arguments that only some methods have; `scores` stands for base_margin and early_stop.
struct OptionalArguments {
  bool output, scores;
};

/// Reads the arguments of a vectorcall: the rows, then keywords. Returns false with a Python exception set if they make
/// no sense.
bool read_arguments(const char* function, OptionalArguments taken, PyObject* const* args, Py_ssize_t count,
                    PyObject* names, Arguments& read);

/// Finds the output that is called `name`; if `name` is null, sets Output::Value. Returns false with a Python exception
/// set if there is no such output.
bool find_output(PyObject* name, Output& output);

}  // namespace forestvm::python
