// See arrow.hpp.
#include "bindings/python/core/arrow.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/forestvm.h>

#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/result_array.hpp"

// Arrow's C stream interface, https://arrow.apache.org/docs/format/CStreamInterface.html.
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

namespace forestvm::python {
namespace {

/// Owns an array or a schema.
template <class Struct>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept : held_(std::exchange(other.held_, Struct{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~Owned() {
    if (held_.release != nullptr) held_.release(&held_);
  }

  Struct* get() { return &held_; }
  Struct* operator->() { return &held_; }
  explicit operator bool() const { return held_.release != nullptr; }

 private:
  Struct held_{};
};

/// The arrays of an object, one after the other.
class Chunks {
 public:
  /// Asks the object for its arrays. Returns false with a Python exception set if it has none.
  bool open(PyObject* object) {
    capsule_ = Ref::take(PyObject_CallMethod(object, "__arrow_c_stream__", nullptr));
    if (capsule_) return open_stream();
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return false;
    PyErr_Clear();
    capsule_ = Ref::take(PyObject_CallMethod(object, "__arrow_c_array__", nullptr));
    return capsule_ && open_array();
  }

  ArrowSchema& schema() { return *schema_; }

  /// Moves the next array to `chunk`, which is empty after the last one. Returns false with a Python exception set if
  /// there was an error.
  bool next(Owned<ArrowArray>& chunk) {
    chunk = {};
    if (stream_ == nullptr) {
      if (only_ != nullptr) *chunk.get() = std::exchange(*std::exchange(only_, nullptr), ArrowArray{});
      return true;
    }
    const int failed = [&] {
      const WithoutGil free;  // whoever makes the rows may need it
      return stream_->get_next(stream_, chunk.get());
    }();
    return failed == 0 || fail(failed);
  }

 private:
  bool open_stream() {
    stream_ = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule_.get(), "arrow_array_stream"));
    if (stream_ == nullptr) return false;
    const int failed = [&] {
      const WithoutGil free;
      return stream_->get_schema(stream_, own_schema_.get());
    }();
    schema_ = own_schema_.get();
    return failed == 0 || fail(failed);
  }

  bool open_array() {
    PyObject *schema = nullptr, *array = nullptr;
    if (PyArg_ParseTuple(capsule_.get(), "OO", &schema, &array) == 0) return false;
    schema_ = static_cast<ArrowSchema*>(PyCapsule_GetPointer(schema, "arrow_schema"));
    only_ = static_cast<ArrowArray*>(PyCapsule_GetPointer(array, "arrow_array"));
    return schema_ != nullptr && only_ != nullptr;
  }

  bool fail(int code) {
    if (PyErr_Occurred() != nullptr) return false;
    const char* const text = stream_->get_last_error(stream_);
    raise({ErrorCode::Environment, "X",
           std::string("the Arrow stream failed: ") + (text != nullptr ? text : std::strerror(code))});
    return false;
  }

  Ref capsule_;
  ArrowArrayStream* stream_ = nullptr;
  ArrowArray* only_ = nullptr;
  ArrowSchema* schema_ = nullptr;
  Owned<ArrowSchema> own_schema_;
};

std::string text_of(PyObject* option, const char* otherwise) {
  if (option == nullptr) return otherwise;
  const char* const text = PyUnicode_Check(option) ? PyUnicode_AsUTF8AndSize(option, nullptr) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text == nullptr ? "?" : text;
}

/// Returns whether the columns are those of the call before, with the same options.
bool is_same(const ArrowOrder& known, const ArrowSchema& schema, const std::string& columns,
             const std::string& extra) {
  if (!known.known || known.columns != columns || known.extra != extra) return false;
  if (static_cast<std::size_t>(schema.n_children) != known.names.size()) return false;
  for (std::size_t i = 0; i < known.names.size(); ++i) {
    const char* const name = schema.children[i]->name;
    if (known.names[i] != (name == nullptr ? "" : name)) return false;
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
  order.at.resize(forest_of(self).num_features);
  for (std::size_t i = 0; i < order.at.size(); ++i) {
    if (found.get() == Py_None) {
      order.at[i] = i;
      continue;
    }
    PyObject* const at = PyList_GetItem(found.get(), static_cast<Py_ssize_t>(i));
    if (at == nullptr) return false;
    order.at[i] = PyLong_AsSize_t(at);
    if (PyErr_Occurred() != nullptr) return false;
  }
  order.columns = columns;
  order.extra = extra;
  order.known = true;
  return true;
}

/// A schema and arrays whose children are the features, in the model's order and by its names.
class Matched {
 public:
  Matched(const Program& program, const ArrowOrder& order, const ArrowSchema& schema)
      : order_(order), schema_(schema) {
    const bool named = program.meta().num_feature_names != 0;
    children_.reserve(order.at.size());
    names_.reserve(order.at.size());
    for (std::size_t i = 0; i < order.at.size(); ++i) {
      children_.push_back(*schema.children[order.at[i]]);
      if (named) {
        names_.emplace_back(program.feature_name(static_cast<std::uint32_t>(i)));
        children_.back().name = names_.back().c_str();
      }
    }
    for (ArrowSchema& child : children_) pointers_.push_back(&child);
    schema_.n_children = static_cast<std::int64_t>(pointers_.size());
    schema_.children = pointers_.data();
    arrays_.resize(order.at.size());
  }

  const ArrowSchema* schema() const { return &schema_; }

  /// Returns a view of `chunk`, which must live as long.
  ArrowArray view(const ArrowArray& chunk) {
    ArrowArray array = chunk;
    if (static_cast<std::size_t>(chunk.n_children) != order_.names.size()) return array;  // is refused
    for (std::size_t i = 0; i < arrays_.size(); ++i) arrays_[i] = chunk.children[order_.at[i]];
    array.n_children = static_cast<std::int64_t>(arrays_.size());
    array.children = arrays_.data();
    return array;
  }

 private:
  const ArrowOrder& order_;
  ArrowSchema schema_;
  std::vector<std::string> names_;
  std::vector<ArrowSchema> children_;
  std::vector<ArrowSchema*> pointers_;
  std::vector<ArrowArray*> arrays_;
};

/// A call's way from chunks to predictions.
class ArrowCall {
 public:
  ArrowCall(PyObject* self, Output output, const Arguments& given)
      : self_(self),
        forest_(forest_of(self)),
        form_(forest_.form(output)),
        given_(given),
        lease_(forest_.contexts.take(*forest_.predictor)) {}

  PyObject* run() {
    if (!chunks_.open(given_.rows) || !check_schema()) return nullptr;
    Matched matched(forest_.program, lease_.workspace().arrow, chunks_.schema());
    Owned<ArrowArray> first, second;
    if (!chunks_.next(first) || (first && !chunks_.next(second))) return nullptr;
    if (!second) return only(matched, first);
    return several(matched, std::move(first), std::move(second));
  }

 private:
  bool check_schema() {
    const ArrowSchema& schema = chunks_.schema();
    if (schema.format == nullptr || std::strcmp(schema.format, "+s") != 0)
      return unsupported(std::string("X"), "the Arrow array is no table of columns: its format is " +
                                               std::string(schema.format == nullptr ? "" : schema.format));
    const std::string columns = text_of(given_.columns, "name"), extra = text_of(given_.extra, "error");
    ArrowOrder& order = lease_.workspace().arrow;
    return is_same(order, schema, columns, extra) || find_order(self_, schema, columns, extra, order);
  }

  bool unsupported(const std::string& where, const std::string& message) {
    raise_unsupported({ErrorCode::Usage, where, message});
    return false;
  }

  /// Predicts a chunk. Returns false with a Python exception set if that fails.
  bool predict(Matched& matched, const ArrowArray& chunk, ResultType type, void* out) {
    const ArrowArray array = matched.view(chunk);
    fvm_rows rows = FVM_ROWS_INIT;
    rows.kind = FVM_ROWS_ARROW;
    rows.data = &array;
    rows.schema = matched.schema();
    const auto known = c_api::known_arrow(rows, forest_.names, lease_.workspace().columns);
    if (!known) {
      known.error().code == ErrorCode::Refused ? raise_unsupported(known.error()) : raise(known.error());
      return false;
    }
    return write_predictions(forest_, lease_, *known, form_, type, out);
  }

  PyObject* only(Matched& matched, Owned<ArrowArray>& chunk) {
    ResultArray result;
    const std::size_t count = chunk ? static_cast<std::size_t>(chunk->length) : 0;
    if (!result.open(form_, count, given_.out, given_.dtype)) return nullptr;
    if (chunk && !predict(matched, *chunk.get(), result.type(), result.data())) return nullptr;
    return result.release();
  }

  /// Predicts chunks as they come, because their number of rows is not known before the last one.
  PyObject* several(Matched& matched, Owned<ArrowArray> first, Owned<ArrowArray> second) {
    const auto type = type_to_write(form_, given_.out, given_.dtype);
    if (!type) return nullptr;
    const std::size_t row_bytes =
        form_.width * (*type == ResultType::Float64 || *type == ResultType::Int64 ? 8 : 4);
    std::vector<std::byte> numbers;
    std::size_t count = 0;
    const auto add = [&](Owned<ArrowArray>& chunk) {
      const auto rows = static_cast<std::size_t>(chunk->length);
      numbers.resize((count + rows) * row_bytes);
      void* const out = numbers.data() + count * row_bytes;
      count += rows;
      return rows == 0 || predict(matched, *chunk.get(), *type, out);
    };
    if (!add(first)) return nullptr;
    for (first = {}; second;)
      if (!add(second) || !chunks_.next(second)) return nullptr;
    ResultArray result;
    if (!result.open(form_, count, given_.out, given_.dtype)) return nullptr;
    if (!numbers.empty()) std::memcpy(result.data(), numbers.data(), numbers.size());
    return result.release();
  }

  PyObject* self_;
  Forest& forest_;
  const OutputForm& form_;
  const Arguments& given_;
  ContextPool::Lease lease_;
  Chunks chunks_;
};

/// The type of the rows that were read last. It may be gone: another type may have its address.
std::atomic<PyTypeObject*> last_type{nullptr};

}  // namespace

bool is_known_arrow(PyObject* object) { return Py_TYPE(object) == last_type.load(std::memory_order_relaxed); }

PyObject* predict_arrow(PyObject* self, Output output, const Arguments& given) {
  return ArrowCall(self, output, given).run();
}

/// Forest._predict_arrow(X, output, out, dtype, columns, extra)
PyObject* predict_arrow(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Arguments given;
    PyObject* name = nullptr;
    Output output{};
    if (PyArg_ParseTuple(args, "OOOOOO", &given.rows, &name, &given.out, &given.dtype, &given.columns,
                         &given.extra) == 0 ||
        !find_output(name, output))
      return nullptr;
    for (PyObject** const object : {&given.out, &given.dtype, &given.columns, &given.extra})
      if (*object == Py_None) *object = nullptr;
    PyObject* const result = predict_arrow(self, output, given);
    if (result != nullptr) last_type.store(Py_TYPE(given.rows), std::memory_order_relaxed);
    return result;
  });
}

}  // namespace forestvm::python
