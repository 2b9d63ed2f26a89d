// See arrow_source.hpp.
#include "bindings/python/core/arrow_source.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <variant>

#include <forestvm/internal/calls.hpp>

#include "bindings/python/core/attributes.hpp"
#include "bindings/python/core/result_array.hpp"

namespace forestvm::python {

namespace {

/// Calls a method without arguments.
Ref call(PyObject* object, Attribute method) {
  return Ref::take(PyObject_CallMethodObjArgs(object, name_of(method), nullptr));
}

/// Sets `schema` to the schema of a pyarrow object. Returns whether it equals the schema in `order`; if not, `order`
/// forgets its schema. No Python exception is set.
bool is_last_schema(PyObject* object, ArrowOrder& order, Ref& schema) {
  schema = Ref::take(PyObject_GetAttr(object, name_of(Attribute::Schema)));
  if (schema && order.schema && PyObject_RichCompareBool(schema.get(), order.schema.get(), Py_EQ) > 0)
    return true;
  PyErr_Clear();
  order.schema = {};
  order.exported_schema = {};
  return false;
}

std::string attribute_text(PyTypeObject* type, const char* name) {
  const Ref value = Ref::take(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), name));
  const char* const text = value ? PyUnicode_AsUTF8AndSize(value.get(), nullptr) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text == nullptr ? "" : text;
}

ArrowProducer kind_of(PyObject* object) {
  const std::string module = attribute_text(Py_TYPE(object), "__module__");
  const std::string name = attribute_text(Py_TYPE(object), "__name__");
  if (module == "pyarrow.lib" && name == "RecordBatch") return ArrowProducer::ArrowBatch;
  if (module == "pyarrow.lib" && name == "Table") return ArrowProducer::ArrowTable;
  if (module.starts_with("polars.") && name == "DataFrame") return ArrowProducer::PolarsFrame;
  return PyObject_HasAttrString(object, "__arrow_c_array__") != 0 ? ArrowProducer::Array
                                                                  : ArrowProducer::Stream;
}

}  // namespace

ArrowProducer producer_of(PyObject* object, ArrowOrder& order) {
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  if (order.producer_type.get() != type) {
    order.producer = kind_of(object);
    order.producer_type = Ref::share(type);
  }
  return order.producer;
}

bool TableParts::open(PyObject* table, const ArrowOrder& order) {
  *this = {};
  const Py_ssize_t rows = PyObject_Size(table);
  if (rows < 0) return false;
  table_ = table;
  row_count_ = static_cast<std::size_t>(rows);
  step_ = row_count_;
  if (order.producer != ArrowProducer::PolarsFrame) return true;
  const Ref width = Ref::take(PyObject_GetAttr(table, name_of(Attribute::Width)));
  const std::size_t columns = width ? PyLong_AsSize_t(width.get()) : 0;
  if (PyErr_Occurred() != nullptr) return false;
  constexpr std::size_t kPartBytes = std::size_t{32} << 20;
  step_ = std::max<std::size_t>(kPartBytes / (8 * std::max<std::size_t>(columns, 1)) / 64 * 64, 64);
  return true;
}

Ref TableParts::next() {
  if (table_ == nullptr || (begun_ && next_ == row_count_)) return {};
  const std::size_t begin = next_, count = std::min(step_, row_count_ - begin);
  begun_ = true;
  next_ += count;
  if (count == row_count_) return Ref::share(table_);
  return Ref::take(PyObject_CallMethod(table_, "slice", "nn", static_cast<Py_ssize_t>(begin),
                                       static_cast<Py_ssize_t>(count)));
}

bool Chunks::open(PyObject* object, ArrowOrder& order) {
  const ArrowProducer producer = producer_of(object, order);
  if (producer == ArrowProducer::ArrowBatch) return open_batch(object, order);
  if (producer == ArrowProducer::Array) {
    if (open_array(object)) return true;
    // A table of several chunks raises an exception here, because it is not one array; the caller then asks for a
    // stream. An interrupt or a lack of memory says nothing about the table, so it goes to the caller.
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0 || PyErr_ExceptionMatches(PyExc_MemoryError) != 0)
      return false;
    PyErr_Clear();
  }
  capsule_ = call(object, Attribute::ArrowStream);
  if (capsule_) return open_stream(object, order);
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return false;
  PyErr_Clear();
  return open_array(object);
}

bool Chunks::next(Owned<ArrowArray>& chunk) {
  chunk = {};
  if (stream_ == nullptr) {
    if (only_ != nullptr) *chunk.get() = std::exchange(*std::exchange(only_, nullptr), ArrowArray{});
    return true;
  }
  const int failed = [&] {
    const WithoutGil free;  // the producer of the rows may need the GIL
    return stream_->get_next(stream_, chunk.get());
  }();
  return failed == 0 || fail(failed);
}

bool Chunks::open_stream(PyObject* object, ArrowOrder& order) {
  stream_ = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule_.get(), "arrow_array_stream"));
  if (stream_ == nullptr) return false;
  if (order.producer != ArrowProducer::ArrowTable) {
    schema_ = own_schema_.get();
    return read_schema(own_schema_);
  }
  Ref schema;
  schema_ = order.exported_schema.get();
  if (is_last_schema(object, order, schema)) return true;
  if (!read_schema(order.exported_schema)) return false;
  order.schema = std::move(schema);
  return true;
}

/// Exports the array of a pyarrow.RecordBatch, without its schema if `order` has the same one.
bool Chunks::open_batch(PyObject* object, ArrowOrder& order) {
  Ref schema;
  if (is_last_schema(object, order, schema)) {
    const Ref address = Ref::take(PyLong_FromVoidPtr(own_array_.get()));
    const Ref done = Ref::take(
        address ? PyObject_CallMethodObjArgs(object, name_of(Attribute::ExportToC), address.get(), nullptr)
                : nullptr);
    schema_ = order.exported_schema.get();
    only_ = own_array_.get();
    if (done) return true;
    PyErr_Clear();  // The method is not part of pyarrow's interface: another release may lack it.
    return open_array(object);
  }
  if (!open_array(object)) return false;
  *order.exported_schema.get() = std::exchange(*schema_, ArrowSchema{});
  schema_ = order.exported_schema.get();
  order.schema = std::move(schema);
  return true;
}

bool Chunks::read_schema(Owned<ArrowSchema>& schema) {
  const int failed = [&] {
    const WithoutGil free;
    return stream_->get_schema(stream_, schema.get());
  }();
  return failed == 0 || fail(failed);
}

bool Chunks::open_array(PyObject* object) {
  capsule_ = call(object, Attribute::ArrowArray);
  PyObject *schema = nullptr, *array = nullptr;
  if (!capsule_ || PyArg_ParseTuple(capsule_.get(), "OO", &schema, &array) == 0) return false;
  schema_ = static_cast<ArrowSchema*>(PyCapsule_GetPointer(schema, "arrow_schema"));
  only_ = static_cast<ArrowArray*>(PyCapsule_GetPointer(array, "arrow_array"));
  return schema_ != nullptr && only_ != nullptr;
}

bool Chunks::fail(int code) {
  if (PyErr_Occurred() != nullptr) return false;
  const char* const text = stream_->get_last_error(stream_);
  raise(forestvm::fail(
      ErrorCode::Environment, "X",
      std::string("the Arrow stream failed: ") + (text != nullptr ? text : std::strerror(code))));
  return false;
}

namespace {

constexpr const char *kByName = "name", *kNoExtra = "error";  // the defaults of the options

std::string text_of(PyObject* option, const char* otherwise) {
  if (option == nullptr) return otherwise;
  const char* const text = PyUnicode_Check(option) ? PyUnicode_AsUTF8AndSize(option, nullptr) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text == nullptr ? "?" : text;
}

/// Returns whether a schema's columns have the names of the columns that were matched last.
bool has_names(const ArrowOrder& order, const ArrowSchema& schema) {
  if (static_cast<std::size_t>(schema.n_children) != order.names.size()) return false;
  for (std::size_t i = 0; i < order.names.size(); ++i) {
    const char* const name = schema.children[i]->name;
    if (order.names[i] != (name == nullptr ? "" : name)) return false;
  }
  return true;
}

/// Asks forestvm._names which column each feature has. Returns false with a Python exception set if they do not match.
bool find_order(PyObject* self, const ArrowSchema& schema, const std::string& columns,
                const std::string& extra, ArrowOrder& order) {
  order.known = false;
  order.names.clear();
  const Ref names = Ref::take(PyList_New(0));
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    const char* const name = schema.children[i]->name;
    order.names.emplace_back(name == nullptr ? "" : name);
    const std::string& last = order.names.back();
    const Ref text = Ref::take(
        PyUnicode_DecodeUTF8(last.data(), static_cast<Py_ssize_t>(last.size()), "backslashreplace"));
    if (!names || !text || PyList_Append(names.get(), text.get()) != 0) return false;
  }
  const Ref module = Ref::take(PyImport_ImportModule("forestvm._names"));
  if (!module) return false;
  const Ref found = Ref::take(PyObject_CallMethod(module.get(), "order_of", "OOss", self, names.get(),
                                                  columns.c_str(), extra.c_str()));
  if (!found) return false;
  const std::size_t num_features = forest_of(self).num_features;
  order.features.assign(order.names.size(), c_api::kNoFeature);
  for (std::uint32_t i = 0; i < num_features; ++i) {
    PyObject* const at =
        found.get() == Py_None ? nullptr : PyList_GetItem(found.get(), static_cast<Py_ssize_t>(i));
    const std::size_t column = at == nullptr ? i : PyLong_AsSize_t(at);
    if (PyErr_Occurred() != nullptr) return false;
    if (column >= order.features.size() || order.features[column] != c_api::kNoFeature)
      return raise(fail(ErrorCode::Internal, "X", "forestvm._names: two features have one column")) !=
             nullptr;
    order.features[column] = i;
  }
  order.columns = columns;
  order.extra = extra;
  order.known = true;
  return true;
}

/// Checks that rows are a table. Returns false with a Python exception set if they are not.
bool check_table(const ArrowSchema& schema) {
  const std::string format = schema.format == nullptr ? "" : schema.format;
  bool whole = format == "+s" && (schema.n_children == 0 || schema.children != nullptr);
  for (std::int64_t i = 0; whole && i < schema.n_children; ++i) whole = schema.children[i] != nullptr;
  if (whole) return true;
  raise_unsupported(
      fail(ErrorCode::Usage, "X", "the Arrow array is not a table of columns: its format is " + format));
  return false;
}

}  // namespace

bool has_options(const ArrowOrder& order, PyObject* columns, PyObject* extra) {
  return order.known && order.columns == text_of(columns, kByName) && order.extra == text_of(extra, kNoExtra);
}

bool ArrowSource::open(PyObject* forest, PyObject* object, PyObject* columns, PyObject* extra,
                       ArrowOrder& order) {
  if (!chunks_.open(object, order) || !check_table(chunks_.schema())) return false;
  const ArrowSchema& schema = chunks_.schema();
  const bool same = has_options(order, columns, extra) && has_names(order, schema);
  if (!same && !find_order(forest, schema, text_of(columns, kByName), text_of(extra, kNoExtra), order))
    return false;
  order_ = &order;
  return true;
}

std::optional<ColumnRows> ArrowSource::columns_of(const Forest& forest, const ContextPool::Lease& lease,
                                                  const ArrowArray& chunk) {
  const auto matched = order_->columns == kByName ? c_api::Matched::ByName : c_api::Matched::ByPosition;
  const auto known = c_api::matched_arrow(chunk, chunks_.schema(), order_->features, matched, forest.names,
                                          lease.workspace().columns);
  if (known) return std::get<ColumnRows>(*known);
  known.error().code == ErrorCode::Refused ? raise_unsupported(known.error()) : raise(known.error());
  return std::nullopt;
}

bool ArrowSource::predict(Forest& forest, const ContextPool::Lease& lease, const ArrowArray& chunk,
                          const OutputForm& form, ResultType type, std::optional<double> missing, void* out) {
  auto* at = static_cast<std::byte*>(out);
  return each_part(forest, lease, chunk, missing, [&](const ColumnRows& rows) {
    if (!write_predictions(forest, lease, rows, form, type, at)) return false;
    at += rows.count * form.width * bytes_of(type);
    return true;
  });
}

bool ArrowReader::open(PyObject* forest, PyObject* rows, PyObject* columns, PyObject* extra,
                       ArrowOrder& order) {
  forest_ = forest;
  columns_ = columns;
  extra_ = extra;
  order_ = &order;
  if (producer_of(rows, order) == ArrowProducer::PolarsFrame) return parts_.open(rows, order) && open_part();
  return source_.open(forest, rows, columns, extra, order);
}

bool ArrowReader::open_part() {
  source_ = {};
  part_ = parts_.next();
  if (part_) return source_.open(forest_, part_.get(), columns_, extra_, *order_);
  return PyErr_Occurred() == nullptr;
}

bool ArrowReader::next(Owned<ArrowArray>& chunk) {
  if (!source_.next(chunk)) return false;
  while (!chunk && part_) {
    if (!open_part()) return false;
    if (part_ && !source_.next(chunk)) return false;
  }
  return true;
}

}  // namespace forestvm::python
