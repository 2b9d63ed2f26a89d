// Predictions as a stream of Arrow, batch by batch: the method Forest._stream.
#include "bindings/python/core/python.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/core/arguments.hpp"
#include "bindings/python/core/arrow_source.hpp"
#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/result_array.hpp"

namespace forestvm::python {
namespace {

constexpr const char* kCapsule = "arrow_array_stream";

/// Holds the GIL, on whatever thread a consumer of the stream calls.
class WithGil {
 public:
  WithGil() : state_(PyGILState_Ensure()) {}
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  ~WithGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

/// The state of a stream: a forest, its rows, and the output to predict.
struct Stream {
  Forest& forest() const { return forest_of(self.get()); }
  const OutputForm& form() const { return forest().form(output); }

  Ref self;
  Output output{};
  std::string name;
  ArrowOrder order;
  ArrowSource source;
  std::string error;  ///< Text of the last failure.
};

Stream& stream_of(ArrowArrayStream* stream) { return *static_cast<Stream*>(stream->private_data); }

/// Owns the memory of a schema: one of a column, or one of a table of columns.
struct SchemaOwner {
  std::string format, name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
};

void release_schema(ArrowSchema* schema) {
  auto* const owner = static_cast<SchemaOwner*>(schema->private_data);
  for (ArrowSchema& child : owner->children)
    if (child.release != nullptr) child.release(&child);
  schema->release = nullptr;
  delete owner;
}

ArrowSchema make_schema(std::string format, std::string name, std::vector<ArrowSchema> children) {
  auto owner = std::make_unique<SchemaOwner>();
  owner->format = std::move(format);
  owner->name = std::move(name);
  owner->children = std::move(children);
  for (ArrowSchema& child : owner->children) owner->pointers.push_back(&child);
  ArrowSchema schema{};
  schema.format = owner->format.c_str();
  schema.name = owner->name.c_str();
  schema.n_children = static_cast<std::int64_t>(owner->pointers.size());
  schema.children = owner->pointers.data();
  schema.release = release_schema;
  schema.private_data = owner.release();
  return schema;
}

const char* format_of(ResultType type) {
  switch (type) {
    case ResultType::Float32:
      return "f";
    case ResultType::Float64:
      return "g";
    case ResultType::Int32:
      return "i";
    case ResultType::Int64:
      return "l";
  }
  return "";
}

/// Owns the memory of an array: the numbers of one column, or the columns of a batch.
struct ArrayOwner {
  std::vector<std::byte> numbers;
  std::vector<const void*> buffers;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
};

void release_array(ArrowArray* array) {
  auto* const owner = static_cast<ArrayOwner*>(array->private_data);
  for (ArrowArray& child : owner->children)
    if (child.release != nullptr) child.release(&child);
  array->release = nullptr;
  delete owner;
}

ArrowArray make_array(std::int64_t length, std::unique_ptr<ArrayOwner> owner) {
  for (ArrowArray& child : owner->children) owner->pointers.push_back(&child);
  owner->buffers.push_back(nullptr);  // no validity bits
  if (owner->children.empty()) owner->buffers.push_back(owner->numbers.data());
  ArrowArray array{};
  array.length = length;
  array.n_buffers = static_cast<std::int64_t>(owner->buffers.size());
  array.buffers = owner->buffers.data();
  array.n_children = static_cast<std::int64_t>(owner->pointers.size());
  array.children = owner->pointers.data();
  array.release = release_array;
  array.private_data = owner.release();
  return array;
}

/// Makes a batch of `count` rows of `width` numbers of `size` bytes, row by row in `numbers`.
ArrowArray make_batch(const std::vector<std::byte>& numbers, std::size_t count, std::size_t width,
                      std::size_t size) {
  auto batch = std::make_unique<ArrayOwner>();
  for (std::size_t column = 0; column < width; ++column) {
    auto owner = std::make_unique<ArrayOwner>();
    owner->numbers.resize(std::max<std::size_t>(count * size, 1));
    for (std::size_t row = 0; row < count; ++row)
      std::memcpy(owner->numbers.data() + row * size, numbers.data() + (row * width + column) * size, size);
    batch->children.push_back(make_array(static_cast<std::int64_t>(count), std::move(owner)));
  }
  return make_array(static_cast<std::int64_t>(count), std::move(batch));
}

/// Runs `work`, which returns whether it succeeded or set a Python exception, for a consumer without Python.
template <class Work>
int run(ArrowArrayStream* stream, const Work& work) noexcept {
  const WithGil gil;
  const Ref done = Ref::take(guarded([&]() -> PyObject* { return work() ? Py_NewRef(Py_None) : nullptr; }));
  if (done) return 0;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const Ref owned_type = Ref::take(type), owned = Ref::take(value), owned_trace = Ref::take(trace);
  const Ref text = Ref::take(owned ? PyObject_Str(owned.get()) : nullptr);
  const char* const utf8 = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  stream_of(stream).error = utf8 != nullptr ? utf8 : "unknown error";
  PyErr_Clear();
  return EINVAL;
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  return run(stream, [&] {
    const Stream& from = stream_of(stream);
    const OutputForm& form = from.form();
    std::vector<ArrowSchema> children;
    for (std::size_t i = 0; i < form.width; ++i)
      children.push_back(
          make_schema(format_of(form.type), form.flat ? from.name : from.name + "_" + std::to_string(i), {}));
    *out = make_schema("+s", "", std::move(children));
    return true;
  });
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  return run(stream, [&] {
    Stream& from = stream_of(stream);
    *out = {};
    Owned<ArrowArray> chunk;
    if (!from.source.next(chunk)) return false;
    if (!chunk) return true;
    const OutputForm& form = from.form();
    const std::size_t size = form.type == ResultType::Float64 || form.type == ResultType::Int64 ? 8 : 4;
    const auto count = static_cast<std::size_t>(chunk->length);
    std::vector<std::byte> numbers(count * form.width * size);
    const ContextPool::Lease lease = from.forest().contexts.take(*from.forest().predictor);
    if (count != 0 &&
        !from.source.predict(from.forest(), lease, *chunk.get(), form, form.type, numbers.data()))
      return false;
    *out = make_batch(numbers, count, form.width, size);
    return true;
  });
}

const char* get_last_error(ArrowArrayStream* stream) { return stream_of(stream).error.c_str(); }

void release(ArrowArrayStream* stream) {
  const WithGil gil;
  delete &stream_of(stream);
  stream->release = nullptr;
}

void destroy(PyObject* capsule) {
  auto* const stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

}  // namespace

/// Forest._stream(X, output, name, columns, extra): a capsule of predictions of Arrow's rows.
PyObject* stream(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *rows = nullptr, *output = nullptr, *columns = nullptr, *extra = nullptr;
    const char* name = nullptr;
    auto made = std::make_unique<Stream>();
    if (PyArg_ParseTuple(args, "OOsOO", &rows, &output, &name, &columns, &extra) == 0 ||
        !find_output(output, made->output))
      return nullptr;
    if (made->output == Output::Proba && forest_of(self).probabilities == ProbabilitySource::Softmax)
      return raise(
          refused("output proba", "cannot be streamed for a model whose values are labels: stream \"raw\""));
    made->self = Ref::share(self);
    made->name = name;
    if (!has_output(made->forest(), made->output) ||
        !made->source.open(self, rows, columns, extra, made->order))
      return nullptr;
    auto held = std::make_unique<ArrowArrayStream>();
    *held = {get_schema, get_next, get_last_error, release, made.get()};
    PyObject* const capsule = PyCapsule_New(held.get(), kCapsule, destroy);
    if (capsule == nullptr) return nullptr;
    static_cast<void>(held.release());
    static_cast<void>(made.release());
    return capsule;
  });
}

}  // namespace forestvm::python
