// See errors.hpp.
#include "bindings/python/core/errors.hpp"

#include <array>
#include <cstddef>

namespace forestvm::python {
namespace {

/// The exception classes, in the order of ErrorCode, then UnsupportedInput. They live as long as the process.
constexpr std::array<const char*, 5> kNames = {"Refused", "Usage", "Environment", "Internal",
                                               "UnsupportedInput"};
constexpr std::size_t kUnsupportedInput = 4;
std::array<PyObject*, kNames.size()> classes{};

PyObject* raise_as(PyObject* type, const Error& error) {
  const std::string text = error.text();
  const auto decoded = [](const std::string& bytes) {  // file names need not be UTF-8
    return Ref::take(
        PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace"));
  };
  const Ref message = decoded(text), where = decoded(error.where);
  if (!message || !where) return nullptr;
  const Ref exception = Ref::take(PyObject_CallFunctionObjArgs(type, message.get(), where.get(), nullptr));
  if (exception) PyErr_SetObject(type, exception.get());
  return nullptr;
}

}  // namespace

bool find_error_classes() {
  const Ref module = Ref::take(PyImport_ImportModule("forestvm._errors"));
  if (!module) return false;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    classes[i] = PyObject_GetAttrString(module.get(), kNames[i]);
    if (classes[i] == nullptr) return false;
  }
  return true;
}

PyObject* raise(const Error& error) { return raise_as(classes[static_cast<std::size_t>(error.code)], error); }

PyObject* raise_unsupported(const Error& error) { return raise_as(classes[kUnsupportedInput], error); }

std::string taken_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const Ref owned_type = Ref::take(type), owned = Ref::take(value), owned_trace = Ref::take(trace);
  const Ref text = Ref::take(owned ? PyObject_Str(owned.get()) : nullptr);
  const char* const utf8 = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  std::string error = utf8 != nullptr ? utf8 : "unknown error";
  PyErr_Clear();
  return error;
}

}  // namespace forestvm::python
