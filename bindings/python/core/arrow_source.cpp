// See arrow_source.hpp.
#include "bindings/python/core/arrow_source.hpp"

#include <cstdint>
#include <cstring>

#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/result_array.hpp"

namespace forestvm::python {

bool Chunks::open(PyObject* object) {
  capsule_ = Ref::take(PyObject_CallMethod(object, "__arrow_c_stream__", nullptr));
  if (capsule_) return open_stream();
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return false;
  PyErr_Clear();
  capsule_ = Ref::take(PyObject_CallMethod(object, "__arrow_c_array__", nullptr));
  return capsule_ && open_array();
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

bool Chunks::open_stream() {
  stream_ = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule_.get(), "arrow_array_stream"));
  if (stream_ == nullptr) return false;
  const int failed = [&] {
    const WithoutGil free;
    return stream_->get_schema(stream_, own_schema_.get());
  }();
  schema_ = own_schema_.get();
  return failed == 0 || fail(failed);
}

bool Chunks::open_array() {
  PyObject *schema = nullptr, *array = nullptr;
  if (PyArg_ParseTuple(capsule_.get(), "OO", &schema, &array) == 0) return false;
  schema_ = static_cast<ArrowSchema*>(PyCapsule_GetPointer(schema, "arrow_schema"));
  only_ = static_cast<ArrowArray*>(PyCapsule_GetPointer(array, "arrow_array"));
  return schema_ != nullptr && only_ != nullptr;
}

bool Chunks::fail(int code) {
  if (PyErr_Occurred() != nullptr) return false;
  const char* const text = stream_->get_last_error(stream_);
  raise({ErrorCode::Environment, "X",
         std::string("the Arrow stream failed: ") + (text != nullptr ? text : std::strerror(code))});
  return false;
}

namespace {

std::string text_of(PyObject* option, const char* otherwise) {
  if (option == nullptr) return otherwise;
  const char* const text = PyUnicode_Check(option) ? PyUnicode_AsUTF8AndSize(option, nullptr) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text == nullptr ? "?" : text;
}

/// Returns whether the columns and the options are those of the previous call.
bool is_same(const ArrowOrder& known, const ArrowSchema& schema, const std::string& columns,
             const std::string& extra) {
  if (!known.known || known.columns != columns || known.extra != extra) return false;
  if (static_cast<std::size_t>(schema.n_children) != known.names.size()) return false;
  for (std::size_t i = 0; i < known.names.size(); ++i) {
    const char* const name = schema.children[i]->name;
    if (std::strcmp(known.names[i].c_str(), name == nullptr ? "" : name) != 0) return false;
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
      return raise({ErrorCode::Internal, "X", "forestvm._names: two features have one column"}) != nullptr;
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
      {ErrorCode::Usage, "X", "the Arrow array is not a table of columns: its format is " + format});
  return false;
}

}  // namespace

bool ArrowSource::open(PyObject* forest, PyObject* object, PyObject* columns, PyObject* extra,
                       ArrowOrder& order) {
  if (!chunks_.open(object) || !check_table(chunks_.schema())) return false;
  const ArrowSchema& schema = chunks_.schema();
  const std::string by = text_of(columns, "name"), others = text_of(extra, "error");
  if (!is_same(order, schema, by, others) && !find_order(forest, schema, by, others, order)) return false;
  order_ = &order;
  return true;
}

bool ArrowSource::predict(Forest& forest, const ContextPool::Lease& lease, const ArrowArray& chunk,
                          const OutputForm& form, ResultType type, void* out) {
  const auto known = c_api::matched_arrow(chunk, chunks_.schema(), order_->features, forest.names,
                                          lease.workspace().columns);
  if (known) return write_predictions(forest, lease, *known, form, type, out);
  known.error().code == ErrorCode::Refused ? raise_unsupported(known.error()) : raise(known.error());
  return false;
}

}  // namespace forestvm::python
