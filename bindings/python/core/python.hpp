// Python's C API, and owners for its references and buffers. Every file of the extension includes it first.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

namespace forestvm::python {

/// Owns a reference to a Python object; null when the call that should have given one failed.
class Ref {
 public:
  Ref() = default;
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  static Ref take(PyObject* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  static Ref share(PyObject* object) {
    Py_XINCREF(object);
    return take(object);
  }

  explicit operator bool() const { return object_ != nullptr; }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }

 private:
  PyObject* object_ = nullptr;
};

/// Owns a view of an object's memory.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() { PyBuffer_Release(&view_); }

  /// Returns whether `object` gives a view of this kind; if not, a Python exception is set.
  bool open(PyObject* object, int flags) { return PyObject_GetBuffer(object, &view_, flags) == 0; }

  void close() { PyBuffer_Release(&view_); }

  /// Describes memory that an object keeps alive for as long as the caller holds a reference to it.
  void borrow(const Py_buffer& view) {
    PyBuffer_Release(&view_);
    view_ = view;
    view_.obj = nullptr;
  }

  const Py_buffer* operator->() const { return &view_; }
  const Py_buffer& operator*() const { return view_; }

 private:
  Py_buffer view_{};
};

/// Holds the GIL while it exists, on any thread.
class WithGil {
 public:
  WithGil() : state_(PyGILState_Ensure()) {}
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  ~WithGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

/// Lets other Python threads run while it exists.
class WithoutGil {
 public:
  explicit WithoutGil(bool release = true) : state_(release ? PyEval_SaveThread() : nullptr) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_;
};

}  // namespace forestvm::python
