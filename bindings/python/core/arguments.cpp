// See arguments.hpp.
#include "bindings/python/core/arguments.hpp"

#include <array>
#include <cstddef>
#include <string>

#include <forestvm/internal/formatted.hpp>

#include "bindings/python/core/errors.hpp"

namespace forestvm::python {
namespace {

struct Keyword {
  const char* name;
  PyObject* Arguments::*field;
  PyObject*
      text;  ///< The interned name. Most calls pass the same object, so that comparing pointers is enough.
};
std::array<Keyword, 9> keywords = {{
    {"out", &Arguments::out, nullptr},
    {"output", &Arguments::output, nullptr},
    {"dtype", &Arguments::dtype, nullptr},
    {"missing", &Arguments::missing, nullptr},
    {"columns", &Arguments::columns, nullptr},
    {"extra", &Arguments::extra, nullptr},
    {"base_margin", &Arguments::base_margin, nullptr},
    {"early_stop", &Arguments::early_stop, nullptr},
    {"X", &Arguments::rows, nullptr},
}};
std::array<PyObject*, kOutputCount> outputs{};

const Keyword* keyword_called(PyObject* name) {
  for (const Keyword& keyword : keywords)
    if (keyword.text == name) return &keyword;
  for (const Keyword& keyword : keywords)
    if (PyUnicode_CompareWithASCIIString(name, keyword.name) == 0) return &keyword;
  return nullptr;
}

bool refuse(const char* function, const char* what, PyObject* name) {
  PyErr_Format(PyExc_TypeError, what, function, name);
  return false;
}

/// Checks an option that is one of two words. None, which stands for the first of them, becomes null.
bool check_option(const char* name, PyObject*& given, const char* first, const char* second) {
  if (given == Py_None) given = nullptr;
  if (given == nullptr) return true;
  for (const char* const word : {first, second})
    if (PyUnicode_Check(given) && PyUnicode_CompareWithASCIIString(given, word) == 0) return true;
  const Ref repr = Ref::take(PyObject_Repr(given));
  const char* const text = repr ? PyUnicode_AsUTF8AndSize(repr.get(), nullptr) : nullptr;
  if (text == nullptr) return false;
  raise(fail(ErrorCode::Usage, name, formatted("expected \"{}\" or \"{}\", not {}", first, second, text)));
  return false;
}

}  // namespace

bool make_argument_names() {
  for (Keyword& keyword : keywords) {
    keyword.text = PyUnicode_InternFromString(keyword.name);
    if (keyword.text == nullptr) return false;
  }
  for (std::size_t i = 0; i < kOutputCount; ++i) {
    outputs[i] = PyUnicode_InternFromString(kOutputNames[i]);
    if (outputs[i] == nullptr) return false;
  }
  return true;
}

bool read_arguments(const char* function, OptionalArguments taken, PyObject* const* args, Py_ssize_t count,
                    PyObject* names, Arguments& read) {
  if (count > 1) return refuse(function, "%s() takes one positional argument, the rows", nullptr);
  if (count == 1) read.rows = args[0];
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GetItem(names, i);
    const Keyword* const keyword = keyword_called(name);
    const bool of_scores = keyword != nullptr && (keyword->field == &Arguments::base_margin ||
                                                  keyword->field == &Arguments::early_stop);
    if (keyword == nullptr || (keyword->field == &Arguments::output && !taken.output) ||
        (of_scores && !taken.scores))
      return refuse(function, "%s() got an unexpected keyword argument '%U'", name);
    if (read.*keyword->field != nullptr)
      return refuse(function, "%s() got multiple values for argument '%U'", name);
    read.*keyword->field = args[count + i];
  }
  if (read.rows == nullptr) return refuse(function, "%s() is missing its argument, the rows", nullptr);
  if (read.out == Py_None) read.out = nullptr;
  if (read.dtype == Py_None) read.dtype = nullptr;
  if (read.missing == Py_None) read.missing = nullptr;
  if (read.base_margin == Py_None) read.base_margin = nullptr;
  if (read.early_stop == Py_None) read.early_stop = nullptr;
  if (read.missing != nullptr && PyFloat_Check(read.missing)) {
    const double missing = PyFloat_AsDouble(read.missing);
    if (missing != missing) read.missing = nullptr;  // NaN is always missing
  }
  return check_option("columns", read.columns, "name", "position") &&
         check_option("extra", read.extra, "error", "ignore");
}

bool find_output(PyObject* name, Output& output) {
  output = Output::Value;
  if (name == nullptr) return true;
  for (std::size_t i = 0; i < kOutputCount; ++i)
    if (name == outputs[i] ||
        (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, kOutputNames[i]) == 0)) {
      output = static_cast<Output>(i);
      return true;
    }
  std::string known;
  for (const char* const word : kOutputNames) known += formatted("{}\"{}\"", known.empty() ? "" : ", ", word);
  raise(usage("output: expected one of {}", known));
  return false;
}

}  // namespace forestvm::python
