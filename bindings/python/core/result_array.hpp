// The arrays that predictions are written to.
#pragma once

#include "bindings/python/core/python.hpp"

#include <cstddef>
#include <optional>

#include "bindings/python/core/forest.hpp"

namespace forestvm::python {

/// Returns the type of the numbers that a call writes: that of `out` or the one that `dtype` asks for, which may be
/// null. Returns nothing, with a Python exception set, if it does not suit the output.
std::optional<ResultType> type_to_write(const OutputForm& form, PyObject* out, PyObject* dtype);

/// The array that a call writes to.
class ResultArray {
 public:
  /// Makes a new array, or takes the caller's, `out`. Returns false with a Python exception set if that fails.
  bool open(const OutputForm& form, std::size_t rows, PyObject* out, PyObject* dtype);

  ResultType type() const { return type_; }
  void* data() const { return buffer_->buf; }
  PyObject* release() { return array_.release(); }

 private:
  bool take(const OutputForm& form, std::size_t rows, PyObject* out, PyObject* dtype);

  Ref array_;
  Buffer buffer_;
  ResultType type_{};
};

/// Predicts rows into memory. The output may be one that is derived from what the program computes. Does not need the
/// GIL.
Result<void> write_output(Forest& forest, const ContextPool::Lease& lease, const AnyRows& rows,
                          const OutputForm& form, ResultType type, void* out);

/// Calls write_output, for which other Python threads may run if there is much to do. Returns false with a Python
/// exception set if that fails.
bool write_predictions(Forest& forest, const ContextPool::Lease& lease, const AnyRows& rows,
                       const OutputForm& form, ResultType type, void* out);

/// Predicts rows into an array: the caller's, `out`, or a new one. Returns it, or null with a Python exception set.
PyObject* answer(Forest& forest, const AnyRows& rows, Output output, PyObject* out, PyObject* dtype);

}  // namespace forestvm::python
