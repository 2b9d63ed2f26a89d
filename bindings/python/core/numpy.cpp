// See numpy.hpp.
#include "bindings/python/core/numpy.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "bindings/python/core/errors.hpp"

namespace forestvm::python {
namespace {

/// Objects of NumPy, which live as long as the process.
PyObject *array_type, *empty, *dtype_type;
std::array<PyObject*, 4> dtypes{};  // in the order of ResultType
constexpr std::array<const char*, 4> kDtypeNames = {"float32", "float64", "int32", "int64"};

/// The fields of a NumPy array, as NumPy's ABI has had them since its first release (PyArrayObject_fields).
struct ArrayFields {
  PyObject ob_base;
  char* data;
  int ndim;
  Py_ssize_t *shape, *strides;
  PyObject *base, *dtype;
  int flags;
};
constexpr int kIsContiguous = 0x1, kIsWritable = 0x400;

/// A type of arrays whose fields are read in place: its name, its format in Python's buffers, the size of a number, and
/// NumPy's only dtype object for it.
struct FieldType {
  const char* name;
  const char* format;
  Py_ssize_t size;
  PyObject* dtype;
};
std::array<FieldType, 12> field_types = {{{"float32", "f", 4, nullptr},
                                          {"float64", "d", 8, nullptr},
                                          {"float16", "e", 2, nullptr},
                                          {"bool", "?", 1, nullptr},
                                          {"int8", "b", 1, nullptr},
                                          {"int16", "h", 2, nullptr},
                                          {"int32", "i", 4, nullptr},
                                          {"int64", "l", 8, nullptr},
                                          {"uint8", "B", 1, nullptr},
                                          {"uint16", "H", 2, nullptr},
                                          {"uint32", "I", 4, nullptr},
                                          {"uint64", "L", 8, nullptr}}};
bool fields_known = false;

/// PyArray_NewFromDescr(class, dtype, dimensions, shape, strides, data, flags, object), which takes over a reference to
/// the dtype. It is null if this NumPy's C functions have another ABI than all releases so far.
using NewFromDescr = PyObject* (*)(PyObject*, PyObject*, int, const Py_ssize_t*, const Py_ssize_t*, void*,
                                   int, PyObject*);
NewFromDescr new_from_descr = nullptr;

/// Finds PyArray_NewFromDescr in the table of NumPy's C functions, which NumPy 1 and 2 have in the same place. Calling
/// it takes half as long as calling numpy.empty. Where the table is not found, numpy.empty makes arrays.
void find_new_from_descr() {
  constexpr std::size_t kGetNDArrayCVersion = 0, kNewFromDescr = 94;
  Ref module = Ref::take(PyImport_ImportModule("numpy._core._multiarray_umath"));  // NumPy 2
  if (!module) {
    PyErr_Clear();
    module = Ref::take(PyImport_ImportModule("numpy.core._multiarray_umath"));
  }
  const Ref capsule = Ref::take(module ? PyObject_GetAttrString(module.get(), "_ARRAY_API") : nullptr);
  const auto table = capsule ? static_cast<void**>(PyCapsule_GetPointer(capsule.get(), nullptr)) : nullptr;
  PyErr_Clear();
  if (table == nullptr) return;
  const unsigned abi = reinterpret_cast<unsigned (*)()>(table[kGetNDArrayCVersion])() >> 24;
  if (abi == 1 || abi == 2) new_from_descr = reinterpret_cast<NewFromDescr>(table[kNewFromDescr]);
}

/// Describes an array by its fields. Returns nothing if its type is not in `field_types`, or it is not as `flags` ask.
std::optional<Py_buffer> read_fields(PyObject* array, int flags) {
  const auto& fields = *reinterpret_cast<const ArrayFields*>(array);
  const auto* type = field_types.data();
  while (type->dtype != fields.dtype)
    if (++type == field_types.data() + field_types.size()) return std::nullopt;
  const bool in_one_piece =
      (flags & PyBUF_STRIDES) != PyBUF_STRIDES || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
  if (in_one_piece && (fields.flags & kIsContiguous) == 0) return std::nullopt;
  if ((flags & PyBUF_WRITABLE) != 0 && (fields.flags & kIsWritable) == 0) return std::nullopt;
  Py_buffer view{};
  view.buf = fields.data;
  view.len = view.itemsize = type->size;
  for (int axis = 0; axis < fields.ndim; ++axis) view.len *= fields.shape[axis];
  view.readonly = (fields.flags & kIsWritable) == 0 ? 1 : 0;
  view.ndim = fields.ndim;
  view.format = const_cast<char*>(type->format);
  view.shape = fields.shape;
  view.strides = fields.strides;
  return view;
}

/// Returns whether an array's fields agree with its buffer.
bool fields_agree(PyObject* array) {
  Buffer buffer;
  if (!buffer.open(array, PyBUF_STRIDES | PyBUF_FORMAT)) return false;
  const auto view = read_fields(array, PyBUF_STRIDES | PyBUF_FORMAT);
  if (!view || view->buf != buffer->buf || view->ndim != buffer->ndim || view->len != buffer->len ||
      view->readonly != buffer->readonly || std::strcmp(view->format, buffer->format) != 0)
    return false;
  for (int axis = 0; axis < view->ndim; ++axis)
    if (view->shape[axis] != buffer->shape[axis] || view->strides[axis] != buffer->strides[axis])
      return false;
  return true;
}

/// Finds out whether the fields of arrays are where ArrayFields has them. Returns false with a Python exception set if
/// that fails.
bool learn_fields(PyObject* numpy) {
  for (FieldType& type : field_types) {
    type.dtype = PyObject_CallFunction(dtype_type, "s", type.name);
    if (type.dtype == nullptr) return false;
  }
  const Ref size = Ref::take(PyObject_GetAttrString(array_type, "__basicsize__"));
  const Ref matrix =
      Ref::take(PyObject_CallMethod(numpy, "zeros", "((nn)s)", Py_ssize_t{2}, Py_ssize_t{3}, "float32"));
  const Ref turned = Ref::take(matrix ? PyObject_GetAttrString(matrix.get(), "T") : nullptr);
  const Ref constant = Ref::take(PyObject_CallMethod(numpy, "broadcast_to", "(i(n))", 1, Py_ssize_t{5}));
  if (!size || !turned || !constant) return false;
  if (PyLong_AsSsize_t(size.get()) < static_cast<Py_ssize_t>(sizeof(ArrayFields)))
    return PyErr_Occurred() == nullptr;
  fields_known = fields_agree(matrix.get()) && fields_agree(turned.get()) && fields_agree(constant.get());
  PyErr_Clear();
  return true;
}

/// Returns the character of a format with one number in the machine's byte order; 0 for other formats.
char format_of(const Py_buffer& view) {
  const char* format = view.format;
  if (format == nullptr) return 0;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  return format[0] != 0 && format[1] == 0 ? format[0] : '\0';
}

/// A type of Python's buffers, by the characters of its formats and its size.
struct Format {
  std::string_view characters;
  Py_ssize_t size;
  RowType type;
};
constexpr Format kFormats[] = {
    {"f", 4, RowType::Float32},    {"d", 8, RowType::Float64},    {"e", 2, RowType::Float16},
    {"?", 1, RowType::Bool},       {"bhilq", 1, RowType::Int8},   {"bhilq", 2, RowType::Int16},
    {"bhilq", 4, RowType::Int32},  {"bhilq", 8, RowType::Int64},  {"BHILQ", 1, RowType::UInt8},
    {"BHILQ", 2, RowType::UInt16}, {"BHILQ", 4, RowType::UInt32}, {"BHILQ", 8, RowType::UInt64},
};

/// Returns a stride in numbers; nothing if it is negative or not a multiple of their size.
std::optional<std::size_t> stride_of(const Py_buffer& view, int axis) {
  const Py_ssize_t stride = view.strides[axis];
  if (stride < 0 || stride % view.itemsize != 0) return std::nullopt;
  return static_cast<std::size_t>(stride / view.itemsize);
}

bool is_aligned(const Py_buffer& view) {
  return reinterpret_cast<std::uintptr_t>(view.buf) % static_cast<std::uintptr_t>(view.itemsize) == 0;
}

}  // namespace

bool find_numpy() {
  const Ref numpy = Ref::take(PyImport_ImportModule("numpy"));
  if (!numpy) return false;
  array_type = PyObject_GetAttrString(numpy.get(), "ndarray");
  empty = PyObject_GetAttrString(numpy.get(), "empty");
  dtype_type = PyObject_GetAttrString(numpy.get(), "dtype");
  if (array_type == nullptr || empty == nullptr || dtype_type == nullptr) return false;
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    dtypes[i] = PyObject_CallFunction(dtype_type, "s", kDtypeNames[i]);
    if (dtypes[i] == nullptr) return false;
  }
  find_new_from_descr();
  return learn_fields(numpy.get());
}

bool is_array(PyObject* object) { return reinterpret_cast<PyObject*>(Py_TYPE(object)) == array_type; }

bool open_array(Buffer& buffer, PyObject* object, int flags) {
  if (fields_known && is_array(object)) {
    if (const auto view = read_fields(object, flags)) {
      buffer.borrow(*view);
      return true;
    }
  }
  return buffer.open(object, flags);
}

Ref new_array(std::size_t rows, std::size_t width, bool flat, ResultType type) {
  const Py_ssize_t shape[] = {static_cast<Py_ssize_t>(rows), static_cast<Py_ssize_t>(width)};
  PyObject* const dtype = dtypes[static_cast<std::size_t>(type)];
  if (new_from_descr != nullptr) {
    Py_INCREF(dtype);
    return Ref::take(new_from_descr(array_type, dtype, flat ? 1 : 2, shape, nullptr, nullptr, 0, nullptr));
  }
  return Ref::take(flat ? PyObject_CallFunction(empty, "(n)O", shape[0], dtype)
                        : PyObject_CallFunction(empty, "(nn)O", shape[0], shape[1], dtype));
}

std::optional<ResultType> result_type_of(PyObject* dtype) {
  const Ref known = Ref::take(PyObject_CallFunctionObjArgs(dtype_type, dtype, nullptr));
  if (!known) return std::nullopt;
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    const int equal = PyObject_RichCompareBool(known.get(), dtypes[i], Py_EQ);
    if (equal < 0) return std::nullopt;
    if (equal > 0) return static_cast<ResultType>(i);
  }
  raise(usage("dtype: predictions are float32 or float64, labels and leaf numbers int32 or int64"));
  return std::nullopt;
}

std::optional<RowType> row_type_of(const Py_buffer& view) {
  const char format = format_of(view);
  if (format == 0) return std::nullopt;
  for (const Format& known : kFormats)
    if (known.size == view.itemsize && known.characters.find(format) != std::string_view::npos)
      return known.type;
  return std::nullopt;
}

std::optional<ResultType> result_type_of(const Py_buffer& view) {
  const auto type = row_type_of(view);
  if (type == RowType::Float32) return ResultType::Float32;
  if (type == RowType::Float64) return ResultType::Float64;
  if (type == RowType::Int32) return ResultType::Int32;
  if (type == RowType::Int64) return ResultType::Int64;
  return std::nullopt;
}

std::optional<RowBlock> rows_in_place(const Py_buffer& view, std::size_t num_features) {
  if (view.ndim != 2 || view.shape[1] != static_cast<Py_ssize_t>(num_features) || !is_aligned(view))
    return std::nullopt;
  const auto type = row_type_of(view);
  const auto stride = stride_of(view, 0), column_stride = stride_of(view, 1);
  if (!type || !stride || !column_stride) return std::nullopt;
  RowBlock rows{view.buf, static_cast<std::size_t>(view.shape[0]), *stride, *type, *column_stride};
  // NumPy may give any stride to an axis of length 1, and to all axes of an empty array.
  if (num_features <= 1 || rows.count == 0) rows.column_stride = 1;
  if (rows.count <= 1) rows.stride = num_features * rows.column_stride;
  const std::size_t row_span = num_features == 0 ? 0 : (num_features - 1) * rows.column_stride + 1;
  const std::size_t column_span = rows.count == 0 ? 0 : (rows.count - 1) * rows.stride + 1;
  const bool apart = rows.stride >= row_span || rows.column_stride >= column_span;
  if (!apart || rows.column_stride == 0 || (rows.stride == 0 && num_features != 0)) return std::nullopt;
  return rows;
}

std::optional<RowBlock> row_in_place(const Py_buffer& view, std::size_t num_features) {
  if (view.ndim != 1 || view.shape[0] != static_cast<Py_ssize_t>(num_features) || !is_aligned(view))
    return std::nullopt;
  const auto type = row_type_of(view);
  const auto stride = stride_of(view, 0);
  if (!type || !stride || (*stride == 0 && num_features > 1)) return std::nullopt;
  const std::size_t column_stride = num_features <= 1 ? 1 : *stride;
  return RowBlock{view.buf, 1, num_features * column_stride, *type, column_stride};
}

}  // namespace forestvm::python
