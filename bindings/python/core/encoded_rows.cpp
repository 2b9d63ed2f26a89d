// See encoded_rows.hpp.
#include "bindings/python/core/encoded_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/core/encoder.hpp>
#include <forestvm/internal/formatted.hpp>

#include "bindings/python/core/arrow_source.hpp"
#include "bindings/python/core/column_parts.hpp"
#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/forest.hpp"
#include "bindings/python/core/numpy.hpp"
#include "bindings/python/core/sparse_rows.hpp"

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

/// Returns an instance of the type.
PyObject* new_encoded_rows(PyTypeObject* type, std::unique_ptr<Codes> codes) {
  PyObject* const self = PyType_GenericAlloc(type, 0);
  if (self != nullptr) reinterpret_cast<EncodedRowsObject*>(self)->codes = codes.release();
  return self;
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
        return raise(usage("encoded rows: {} bytes, not {}", buffer->len, codes->rows.byte_count));
      std::memcpy(codes->bytes.get(), buffer->buf, codes->rows.byte_count);
    }
    return new_encoded_rows(type, std::move(codes));
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

/// Codes of rows in columns that come in chunks of any size.
class GrowingCodes {
 public:
  GrowingCodes(const Forest& forest, Context& context)
      : forest_(forest),
        context_(context),
        columns_(forest.predictor->coded_columns()),
        code_columns_(forest.program.columns().size()) {}

  Result<void> add(const ColumnRows& rows) {
    reserve(count_ + rows.count);
    std::vector<Column> memory;
    std::size_t begin = 0;
    if (const std::size_t filled = count_ % kCodeRows; filled != 0) {
      begin = std::min(rows.count, kCodeRows - filled);
      FVM_TRY(fill_block(part_of(rows, 0, begin, memory), filled));
    }
    if (begin == rows.count) return {};
    const ColumnRows rest = part_of(rows, begin, rows.count - begin, memory);
    const std::size_t at = code_offset(count_, columns_);
    FVM_TRY(encode(rest, {codes_->bytes.get() + at, codes_->rows.byte_count - at}));
    count_ += rest.count;
    return {};
  }

  /// Returns the codes of all rows, in memory of their size.
  Result<std::unique_ptr<Codes>> finish() {
    if (count_ == 0)
      FVM_TRY(
          encode(RowBlock{nullptr, 0, forest_.num_features}, {}));  // Fails if the program has no encoder.
    if (codes_ == nullptr || codes_->rows.count != count_) resize(count_);
    return std::move(codes_);
  }

 private:
  Result<void> encode(const AnyRows& rows, std::span<std::uint8_t> out) {
    FVM_TRY(forest_.predictor->encode(context_, rows, out));
    return {};
  }

  void reserve(std::size_t rows) {
    if (codes_ == nullptr || rows > codes_->rows.count)
      resize(codes_ == nullptr ? rows : std::max(rows, 2 * codes_->rows.count));
  }

  void resize(std::size_t rows) {
    auto more = room_for(rows, columns_, encoder_id(forest_.program));
    if (codes_ != nullptr) std::memcpy(more->bytes.get(), codes_->bytes.get(), code_bytes(count_, columns_));
    codes_ = std::move(more);
  }

  /// Encodes rows into the rest of the last block, whose first `filled` rows are there already. Encoding writes whole
  /// blocks, so the rows are encoded into memory of their own and copied.
  Result<void> fill_block(const ColumnRows& rows, std::size_t filled) {
    std::vector<std::uint8_t> block(coded_bytes(rows.count, columns_));
    FVM_TRY(encode(rows, block));
    std::uint8_t* const to = codes_->bytes.get() + code_offset(count_ - filled, columns_);
    for (std::size_t column = 0; column < code_columns_; ++column)
      std::memcpy(to + column * kCodeRows + filled, block.data() + column * kCodeRows, rows.count);
    const std::size_t value_bytes = columns_ - code_columns_, values = code_columns_ * kCodeRows;
    std::memcpy(to + values + filled * value_bytes, block.data() + values, rows.count * value_bytes);
    count_ += rows.count;
    return {};
  }

  const Forest& forest_;
  Context& context_;
  std::size_t columns_, code_columns_, count_ = 0;
  std::unique_ptr<Codes> codes_;  // `codes_->rows.count` is the number of rows for which there is room.
};

/// Encodes rows of Arrow. Returns EncodedRows, or null with a Python exception set.
PyObject* encoded_arrow(PyObject* self, PyObject* rows, std::optional<double> missing, PyObject* columns,
                        PyObject* extra) {
  Forest& forest = forest_of(self);
  const ContextPool::Lease lease = forest.contexts.take(*forest.predictor);
  GrowingCodes codes(forest, *lease);
  const auto add = [&](const ColumnRows& part) {
    const Result<void> done = [&] {
      const WithoutGil free;
      return codes.add(part);
    }();
    if (!done) raise(done.error());
    return done.ok();
  };
  ArrowReader reader;
  if (!reader.open(self, rows, columns, extra, lease.workspace().arrow)) return nullptr;
  Owned<ArrowArray> chunk;
  while (reader.next(chunk) && chunk)
    if (!reader.source().each_part(forest, lease, *chunk.get(), missing, add)) return nullptr;
  if (PyErr_Occurred() != nullptr) return nullptr;
  auto all = codes.finish();
  if (!all) return raise(all.error());
  return new_encoded_rows(encoded_rows_type, std::move(all).value());
}

}  // namespace

PyObject* fill_encoded_rows(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *object = nullptr, *given = nullptr;
    Py_ssize_t begin = 0;
    if (PyArg_ParseTuple(args, "OOn", &object, &given, &begin) == 0) return nullptr;
    Forest& forest = forest_of(self);
    if (Py_TYPE(object) != encoded_rows_type) return raise(usage("not EncodedRows"));
    Codes& codes = codes_of(object);
    Buffer buffer;
    SparseRows sparse;
    std::optional<AnyRows> rows;
    if (PyTuple_Check(given) != 0) {
      PyObject *offsets = nullptr, *columns = nullptr, *values = nullptr;
      int absent_is_zero = 0;
      if (PyArg_ParseTuple(given, "OOOp", &offsets, &columns, &values, &absent_is_zero) == 0 ||
          !sparse.open(offsets, columns, values, absent_is_zero != 0))
        return nullptr;
      rows = sparse.rows();
    } else {
      if (!buffer.open(given, PyBUF_STRIDES | PyBUF_FORMAT)) return nullptr;
      if (const auto block = rows_in_place(*buffer, forest.num_features)) rows = *block;
    }
    if (!rows || begin < 0 || begin % static_cast<Py_ssize_t>(kCodeRows) != 0 ||
        static_cast<std::size_t>(begin) > codes.rows.count ||
        row_count(*rows) > codes.rows.count - static_cast<std::size_t>(begin))
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

PyObject* encode_arrow(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *rows = nullptr, *number = nullptr, *columns = nullptr, *extra = nullptr;
    if (PyArg_ParseTuple(args, "OOOO", &rows, &number, &columns, &extra) == 0) return nullptr;
    std::optional<double> missing;
    if (number != Py_None) missing = PyFloat_AsDouble(number);
    if (PyErr_Occurred() != nullptr) return nullptr;
    return encoded_arrow(self, rows, missing, columns, extra);
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
