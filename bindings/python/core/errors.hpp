// Errors of forestvm as Python exceptions.
#pragma once

#include "bindings/python/core/python.hpp"

#include <exception>
#include <new>
#include <string>
#include <system_error>

#include <forestvm/result.hpp>

namespace forestvm::python {

/// Finds the classes of forestvm._errors. Returns false with a Python exception set if that fails.
bool find_error_classes();

/// Sets the Python exception for an error. Returns null, for functions that return an object.
PyObject* raise(const Error& error);

/// Sets UnsupportedInput for the error. Returns null.
PyObject* raise_unsupported(const Error& error);

/// Returns the text of the Python exception that is set, and clears it.
std::string taken_error();

/// Runs `work`, which returns a new reference or null with a Python exception set. C++ exceptions become Python's.
template <class Work>
PyObject* guarded(const Work& work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::system_error& error) {  // a thread cannot be started
    return raise(fail(ErrorCode::Environment, error.what()));
  } catch (const std::exception& bug) {
    return raise(fail(ErrorCode::Internal, bug.what()));
  }
}

}  // namespace forestvm::python
