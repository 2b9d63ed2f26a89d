// See encoded_rows.hpp.
#include "bindings/python/core/encoded_rows.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include <forestvm/core/encoder.hpp>

#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/forest.hpp"
#include "bindings/python/core/numpy.hpp"

namespace forestvm::python {
namespace {

constexpr std::align_val_t kAlignment{64};

struct FreeAligned {
  void operator()(std::uint8_t* bytes) const { ::operator delete(bytes, kAlignment); }
};

struct Codes {
  std::unique_ptr<std::uint8_t, FreeAligned> bytes;
  CodedRows rows;
};

struct EncodedRowsObject {
  PyObject ob_base;
  Codes* codes;
};

/// The Python type, which lives as long as the process.
PyTypeObject* encoded_rows_type;

Codes& codes_of(PyObject* self) { return *reinterpret_cast<EncodedRowsObject*>(self)->codes; }

/// Returns memory for rows; null, with a Python exception set, if they do not fit in memory.
std::unique_ptr<Codes> room_for(std::size_t rows, std::size_t columns, std::uint64_t encoder) {
  const std::size_t size = coded_bytes(rows, columns);
  if (size > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max())) throw std::bad_alloc();
  auto codes = std::make_unique<Codes>();
  codes->bytes.reset(static_cast<std::uint8_t*>(::operator new(size, kAlignment)));
  std::memset(codes->bytes.get(), 0, size);
  codes->rows = {codes->bytes.get(), rows, columns, size, encoder};
  return codes;
}

/// EncodedRows(rows, columns, encoder, codes): `codes` is a buffer of coded rows, or None for zeros.
PyObject* create(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t rows = 0, columns = 0;
    unsigned long long encoder = 0;
    PyObject* source = nullptr;
    if (PyArg_ParseTuple(args, "nnKO", &rows, &columns, &encoder, &source) == 0) return nullptr;
    if (rows < 0 || columns < 0) return raise(usage("encoded rows: a negative size"));
    auto codes = room_for(static_cast<std::size_t>(rows), static_cast<std::size_t>(columns), encoder);
    if (source != Py_None) {
      Buffer buffer;
      if (!buffer.open(source, PyBUF_SIMPLE)) return nullptr;
      if (static_cast<std::size_t>(buffer->len) != codes->rows.byte_count)
        return raise(usage("encoded rows: " + std::to_string(buffer->len) + " bytes, not " +
                           std::to_string(codes->rows.byte_count)));
      std::memcpy(codes->bytes.get(), buffer->buf, codes->rows.byte_count);
    }
    PyObject* const self = PyType_GenericAlloc(type, 0);
    if (self != nullptr) reinterpret_cast<EncodedRowsObject*>(self)->codes = codes.release();
    return self;
  });
}

void deallocate(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  delete reinterpret_cast<EncodedRowsObject*>(self)->codes;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

Py_ssize_t length(PyObject* self) { return static_cast<Py_ssize_t>(codes_of(self).rows.count); }

PyObject* num_columns(PyObject* self, void*) { return PyLong_FromSize_t(codes_of(self).rows.columns); }
PyObject* num_bytes(PyObject* self, void*) { return PyLong_FromSize_t(codes_of(self).rows.byte_count); }
PyObject* encoder(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(codes_of(self).rows.encoder); }

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  Codes& codes = codes_of(self);
  return PyBuffer_FillInfo(view, self, codes.bytes.get(), static_cast<Py_ssize_t>(codes.rows.byte_count), 1,
                           flags);
}

PyObject* reduce(PyObject* self, PyObject* protocol) {
  const long version = PyLong_AsLong(protocol);
  if (version == -1 && PyErr_Occurred() != nullptr) return nullptr;
  const CodedRows& rows = codes_of(self).rows;
  Ref codes;
  if (version >= 5) {  // protocol 5 can pass the codes beside the pickle without a copy
    const Ref pickle = Ref::take(PyImport_ImportModule("pickle"));
    if (!pickle) return nullptr;
    codes = Ref::take(PyObject_CallMethod(pickle.get(), "PickleBuffer", "O", self));
  } else {
    codes = Ref::take(PyBytes_FromObject(self));
  }
  if (!codes) return nullptr;
  return Py_BuildValue("O(nnKO)", Py_TYPE(self), static_cast<Py_ssize_t>(rows.count),
                       static_cast<Py_ssize_t>(rows.columns), static_cast<unsigned long long>(rows.encoder),
                       codes.get());
}

}  // namespace

PyObject* fill_encoded_rows(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *object = nullptr, *array = nullptr;
    Py_ssize_t begin = 0;
    if (PyArg_ParseTuple(args, "OOn", &object, &array, &begin) == 0) return nullptr;
    Forest& forest = forest_of(self);
    if (Py_TYPE(object) != encoded_rows_type) return raise(usage("not EncodedRows"));
    Codes& codes = codes_of(object);
    Buffer buffer;
    if (!buffer.open(array, PyBUF_STRIDES | PyBUF_FORMAT)) return nullptr;
    const auto rows = rows_in_place(*buffer, forest.num_features);
    if (!rows || begin < 0 || begin % static_cast<Py_ssize_t>(kCodeRows) != 0 ||
        static_cast<std::size_t>(begin) > codes.rows.count ||
        rows->count > codes.rows.count - static_cast<std::size_t>(begin))
      return raise(fail(ErrorCode::Internal, "rows to encode have another form than forestvm._rows makes"));
    const std::size_t at = code_offset(static_cast<std::size_t>(begin), codes.rows.columns);
    auto encoded = [&] {
      const WithoutGil free;
      const ContextPool::Lease context = forest.contexts.take(*forest.predictor);
      return forest.predictor->encode(*context, *rows, {codes.bytes.get() + at, codes.rows.byte_count - at});
    }();
    if (!encoded) return raise(encoded.error());
    Py_RETURN_NONE;
  });
}

std::optional<CodedRows> coded_rows(PyObject* object) {
  if (Py_TYPE(object) != encoded_rows_type) return std::nullopt;
  return codes_of(object).rows;
}

PyObject* make_encoded_rows_type(PyObject* module) {
  static PyMethodDef methods[] = {
      {"__reduce_ex__", reduce, METH_O, nullptr},
      {nullptr, nullptr, 0, nullptr},
  };
  static PyGetSetDef properties[] = {
      {"num_columns", num_columns, nullptr, nullptr, nullptr},
      {"nbytes", num_bytes, nullptr, nullptr, nullptr},
      {"encoder", encoder, nullptr, nullptr, nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(create)},
      {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
      {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
      {Py_sq_length, reinterpret_cast<void*>(length)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {0, nullptr},
  };
  static PyType_Spec spec = {"forestvm.EncodedRows", sizeof(EncodedRowsObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};
  PyObject* const type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  encoded_rows_type = reinterpret_cast<PyTypeObject*>(type);
  return type;
}

}  // namespace forestvm::python
