// Predictions from Python. Rows that lie in NumPy arrays as the core reads them are predicted here; all others go
// through forestvm._rows, which converts them and calls back.
#include "bindings/python/core/python.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/internal/formatted.hpp>

#include "bindings/python/core/arguments.hpp"
#include "bindings/python/core/arrow.hpp"
#include "bindings/python/core/encoded_rows.hpp"
#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/forest.hpp"
#include "bindings/python/core/numbers.hpp"
#include "bindings/python/core/numpy.hpp"
#include "bindings/python/core/result_array.hpp"
#include "bindings/python/core/sparse_rows.hpp"

namespace forestvm::python {
namespace {

/// Returns a function of a module in Python, which is imported when it is first needed.
PyObject* python_function(std::atomic<PyObject*>& cached, const char* name,
                          const char* in_module = "forestvm._rows") {
  if (PyObject* const function = cached.load(std::memory_order_acquire)) return function;
  const Ref module = Ref::take(PyImport_ImportModule(in_module));
  if (!module) return nullptr;
  PyObject* const function = PyObject_GetAttrString(module.get(), name);
  if (function != nullptr) cached.store(function, std::memory_order_release);
  return function;
}

PyObject* or_none(PyObject* object) { return object == nullptr ? Py_None : object; }

/// Predicts rows of any form through forestvm._rows.
PyObject* in_python(PyObject* self, Output output, const Arguments& given) {
  static std::atomic<PyObject*> cached;
  PyObject* const function = python_function(cached, "predict");
  if (function == nullptr) return nullptr;
  const Ref name = Ref::take(PyUnicode_InternFromString(kOutputNames[static_cast<std::size_t>(output)]));
  if (!name) return nullptr;
  return PyObject_CallFunctionObjArgs(function, self, given.rows, name.get(), or_none(given.out),
                                      or_none(given.dtype), or_none(given.missing), or_none(given.columns),
                                      or_none(given.extra), nullptr);
}

/// Predicts rows with margins of their own through forestvm._margins.
PyObject* with_margins(PyObject* self, Output output, const Arguments& given) {
  static std::atomic<PyObject*> cached;
  PyObject* const function = python_function(cached, "predict", "forestvm._margins");
  if (function == nullptr) return nullptr;
  const Ref name = Ref::take(PyUnicode_InternFromString(kOutputNames[static_cast<std::size_t>(output)]));
  if (!name) return nullptr;
  return PyObject_CallFunctionObjArgs(function, self, given.base_margin, given.rows, name.get(),
                                      or_none(given.out), or_none(given.dtype), or_none(given.missing),
                                      or_none(given.columns), or_none(given.extra), nullptr);
}

/// Predicts rows whose sums may end early through forestvm._early_stop.
PyObject* with_early_stop(PyObject* self, Output output, const Arguments& given) {
  static std::atomic<PyObject*> cached;
  PyObject* const function = python_function(cached, "predict", "forestvm._early_stop");
  if (function == nullptr) return nullptr;
  const Ref name = Ref::take(PyUnicode_InternFromString(kOutputNames[static_cast<std::size_t>(output)]));
  if (!name) return nullptr;
  return PyObject_CallFunctionObjArgs(function, self, given.early_stop, given.rows, name.get(),
                                      or_none(given.out), or_none(given.dtype), or_none(given.missing),
                                      or_none(given.columns), or_none(given.extra),
                                      or_none(given.base_margin), nullptr);
}

PyObject* predict_given(PyObject* self, Output output, const Arguments& given) {
  Forest& forest = forest_of(self);
  if (!has_output(forest, output)) return nullptr;
  if (given.early_stop != nullptr) return with_early_stop(self, output, given);
  if (given.base_margin != nullptr) return with_margins(self, output, given);
  const bool computed_here = output != Output::Proba || forest.probabilities != ProbabilitySource::Softmax;
  if (given.missing == nullptr && computed_here) {
    if (is_array(given.rows)) {
      Buffer buffer;
      if (open_array(buffer, given.rows, PyBUF_STRIDES | PyBUF_FORMAT)) {
        if (const auto rows = rows_in_place(*buffer, forest.num_features))
          return answer(forest, *rows, output, given.out, given.dtype);
      } else {
        PyErr_Clear();  // Dates, for example, are no buffers: forestvm._rows reports that.
      }
    } else if (const auto rows = coded_rows(given.rows)) {
      return answer(forest, *rows, output, given.out, given.dtype);
    } else if (is_known_arrow(given.rows)) {
      PyObject* const result = predict_arrow(self, output, given);
      if (result != nullptr || PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return result;
      PyErr_Clear();
    }
  }
  return in_python(self, output, given);
}

PyObject* predict_called(const char* function, std::optional<Output> output, PyObject* self,
                         PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments given;
    Output asked = output.value_or(Output::Value);
    const OptionalArguments taken{!output, output != Output::Leaf};
    if (!read_arguments(function, taken, args, count, names, given)) return nullptr;
    if (!output && !find_output(given.output, asked)) return nullptr;
    return predict_given(self, asked, given);
  });
}

}  // namespace

bool has_output(const Forest& forest, Output output) {
  if (forest.form(output).width != 0 || output == Output::Leaf) return true;
  const bool against = output == Output::Interactions && !forest.program.background().empty();
  if (against || is_of_trees(forest.form(output).kind) || output == Output::Quantile) {
    const auto checked = check_call(forest.program, forest.form(output).kind, forest.call);
    if (!checked) raise(checked.error());
    return checked.ok();
  }
  const std::string name = kOutputNames[static_cast<std::size_t>(output)];
  if (explains_scores(forest.form(output).kind)) {
    const std::string option = output == Output::ApproxContributions ? "approx_contributions" : name;
    raise(refused("output " + name,
                  "the program has none: load the model with {}=True, or compile it with --with {}", option,
                  name));
    return false;
  }
  raise(refused("output " + name,
                forest.probabilities == ProbabilitySource::None && output == Output::Proba
                    ? "the model's values are not probabilities of classes: its objective is " +
                          std::string(forest.program.text(StringId::Objective))
                    : "the model has no classes: its objective is " +
                          std::string(forest.program.text(StringId::Objective))));
  return false;
}

bool has_stream(const Forest& forest, Output output) {
  if (output != Output::Proba || forest.probabilities != ProbabilitySource::Softmax)
    return has_output(forest, output);
  raise(refused("output proba", "cannot be streamed for a model whose values are labels: stream \"raw\""));
  return false;
}

PyObject* predict(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return predict_called("predict", std::nullopt, self, args, count, names);
}
PyObject* predict_raw(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return predict_called("predict_raw", Output::Raw, self, args, count, names);
}
PyObject* predict_class(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return predict_called("predict_class", Output::Class, self, args, count, names);
}
PyObject* predict_proba(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return predict_called("predict_proba", Output::Proba, self, args, count, names);
}
PyObject* apply(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return predict_called("apply", Output::Leaf, self, args, count, names);
}

/// Forest._predict_csr(offsets, columns, values, absent_is_zero, output, out): sparse rows, as SciPy has them.
PyObject* predict_csr(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *offsets = nullptr, *columns = nullptr, *values = nullptr, *name = nullptr, *out = nullptr;
    int absent_is_zero = 0;
    if (PyArg_ParseTuple(args, "OOOpOO", &offsets, &columns, &values, &absent_is_zero, &name, &out) == 0)
      return nullptr;
    Output output{};
    SparseRows rows;
    if (!find_output(name, output) || !rows.open(offsets, columns, values, absent_is_zero != 0))
      return nullptr;
    return answer(forest_of(self), rows.rows(), output, out, nullptr);
  });
}

/// Forest._new_result(rows, output, out, dtype): returns the array for the predictions of `rows` rows: `out`, or a new
/// array if `out` is None.
PyObject* new_result(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t rows = 0;
    PyObject *name = nullptr, *out = nullptr, *dtype = nullptr;
    if (PyArg_ParseTuple(args, "nOOO", &rows, &name, &out, &dtype) == 0) return nullptr;
    Output output{};
    if (!find_output(name, output)) return nullptr;
    ResultArray result;
    if (!result.open(forest_of(self).form(output), static_cast<std::size_t>(rows),
                     out == Py_None ? nullptr : out, dtype == Py_None ? nullptr : dtype))
      return nullptr;
    return result.release();
  });
}

namespace {

PyObject* number_of(ResultType type, const void* number) {
  switch (type) {
    case ResultType::Float32:
      return PyFloat_FromDouble(static_cast<double>(*static_cast<const float*>(number)));
    case ResultType::Float64:
      return PyFloat_FromDouble(*static_cast<const double*>(number));
    case ResultType::Int32:
      return PyLong_FromLong(*static_cast<const std::int32_t*>(number));
    case ResultType::Int64:
      return PyLong_FromLongLong(*static_cast<const std::int64_t*>(number));
  }
  return nullptr;
}

/// Returns the predictions of one row: a number, or an array of them.
PyObject* answer_one(Forest& forest, const RowBlock& row, Output output) {
  const OutputForm& form = forest.form(output);
  const ContextPool::Lease lease = forest.contexts.take(*forest.predictor);
  if (form.flat) {
    std::int64_t number = 0;  // has room for a number of each type
    if (!write_predictions(forest, lease, row, form, form.type, &number)) return nullptr;
    return number_of(form.type, &number);
  }
  Ref array = new_array(form.width, 1, true, form.type);
  Buffer buffer;
  if (!array || !open_array(buffer, array.get(), PyBUF_WRITABLE)) return nullptr;
  return write_predictions(forest, lease, row, form, form.type, buffer->buf) ? array.release() : nullptr;
}

/// Reads a list or tuple of numbers into `values`. Returns whether it is one, with as many numbers as the model has
/// features.
bool numbers_in(PyObject* row, std::size_t num_features, std::vector<double>& values) {
  bool is_list = PyList_Check(row);
  if (!is_list && !PyTuple_Check(row)) return false;
  if ((is_list ? PyList_Size(row) : PyTuple_Size(row)) != static_cast<Py_ssize_t>(num_features)) return false;
#ifdef Py_GIL_DISABLED
  // Another thread may change the list between two items; a tuple has the items of one time.
  const Ref tuple = Ref::take(is_list ? PyList_AsTuple(row) : Py_NewRef(row));
  if (!tuple) PyErr_Clear();
  if (!tuple || PyTuple_Size(tuple.get()) != static_cast<Py_ssize_t>(num_features)) return false;
  row = tuple.get();
  is_list = false;
#endif
  values.resize(num_features);
  for (std::size_t i = 0; i < num_features; ++i) {
    const auto at = static_cast<Py_ssize_t>(i);
    const auto number = number_in(is_list ? PyList_GetItem(row, at) : PyTuple_GetItem(row, at));
    if (!number) return false;
    values[i] = *number;
  }
  return true;
}

}  // namespace

PyObject* predict_one(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments given;
    Output output{};
    if (!read_arguments("predict_one", {true, false}, args, count, names, given) ||
        !find_output(given.output, output))
      return nullptr;
    if (given.out != nullptr || given.dtype != nullptr)
      return raise(usage("predict_one gives Python's numbers, or a new array: it takes no out and no dtype"));
    Forest& forest = forest_of(self);
    if (!has_output(forest, output)) return nullptr;
    const bool plain = given.missing == nullptr &&
                       (output != Output::Proba || forest.probabilities != ProbabilitySource::Softmax);
    if (plain && is_array(given.rows)) {
      Buffer buffer;
      if (!open_array(buffer, given.rows, PyBUF_STRIDES | PyBUF_FORMAT))
        PyErr_Clear();
      else if (const auto row = row_in_place(*buffer, forest.num_features))
        return answer_one(forest, *row, output);
    } else if (plain) {
      thread_local std::vector<double> values;
      if (numbers_in(given.rows, forest.num_features, values))
        return answer_one(forest, {values.data(), 1, values.size(), RowType::Float64}, output);
    }
    static std::atomic<PyObject*> cached;
    PyObject* const function = python_function(cached, "predict_one");
    if (function == nullptr) return nullptr;
    const Ref name = Ref::take(PyUnicode_FromString(kOutputNames[static_cast<std::size_t>(output)]));
    if (!name) return nullptr;
    return PyObject_CallFunctionObjArgs(function, self, given.rows, name.get(), or_none(given.missing),
                                        or_none(given.columns), or_none(given.extra), nullptr);
  });
}

}  // namespace forestvm::python
