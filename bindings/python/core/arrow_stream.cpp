// Predictions as a stream of Arrow, batch by batch: the method Forest._stream.
#include "bindings/python/core/python.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>

#include "bindings/python/core/arguments.hpp"
#include "bindings/python/core/arrow_export.hpp"
#include "bindings/python/core/arrow_source.hpp"
#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/result_array.hpp"

namespace forestvm::python {
namespace {

constexpr const char* kCapsule = "arrow_array_stream";

/// The state of a stream: a forest, its rows, and the output to predict.
struct Stream {
  Forest& forest() const { return forest_of(self.get()); }
  const OutputForm& form() const { return forest().form(output); }

  Ref self, rows, columns, extra;
  Output output{};
  std::string name;
  std::optional<double> missing;  ///< The number that is missing, besides NaN.
  ArrowOrder order;
  ArrowReader reader;
  std::string error;  ///< Text of the last failure.
};

Stream& stream_of(ArrowArrayStream* stream) { return *static_cast<Stream*>(stream->private_data); }

/// Makes a batch of `count` rows of `width` numbers. `numbers` has them row by row, `size` bytes each.
ArrowArray make_batch(const std::vector<std::byte>& numbers, std::size_t count, std::size_t width,
                      std::size_t size) {
  std::vector<ArrowArray> columns;
  for (std::size_t column = 0; column < width; ++column) {
    std::vector<std::byte> column_numbers(count * size);
    for (std::size_t row = 0; row < count; ++row)
      std::memcpy(column_numbers.data() + row * size, numbers.data() + (row * width + column) * size, size);
    columns.push_back(make_array(count, std::move(column_numbers)));
  }
  return make_array(count, {}, std::move(columns));
}

/// Runs `work` for a consumer that need not know Python. `work` returns true, or false with a Python exception set,
/// whose text becomes the stream's error. Returns 0 or EINVAL.
template <class Work>
int run(ArrowArrayStream* stream, const Work& work) noexcept {
  const WithGil gil;
  const Ref done = Ref::take(guarded([&]() -> PyObject* { return work() ? Py_NewRef(Py_None) : nullptr; }));
  if (done) return 0;
  stream_of(stream).error = taken_error();
  return EINVAL;
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  return run(stream, [&] {
    const Stream& from = stream_of(stream);
    const OutputForm& form = from.form();
    std::vector<ArrowSchema> children;
    for (std::size_t i = 0; i < form.width; ++i)
      children.push_back(
          make_schema(format_of(form.type), form.flat ? from.name : formatted("{}_{}", from.name, i), {}));
    *out = make_schema("+s", "", std::move(children));
    return true;
  });
}

/// Returns whether no margins are left after the last rows; otherwise a Python exception is set.
bool has_used_margins(const Forest& forest) {
  const std::size_t used = forest.margins_used.load(std::memory_order_relaxed);
  if (used == forest.call.base_margin.rows) return true;
  raise(fail(ErrorCode::Usage, "base_margin",
             formatted("has {} rows, and the stream has {}", forest.call.base_margin.rows, used)));
  return false;
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  return run(stream, [&] {
    Stream& from = stream_of(stream);
    *out = {};
    Owned<ArrowArray> chunk;
    if (!from.reader.next(chunk)) return false;
    if (!chunk) return has_used_margins(from.forest());
    const OutputForm& form = from.form();
    const std::size_t size = bytes_of(form.type);
    const auto count = static_cast<std::size_t>(chunk->length);
    std::vector<std::byte> numbers(count * form.width * size);
    const ContextPool::Lease lease = from.forest().contexts.take(*from.forest().predictor);
    if (count != 0 && !from.reader.source().predict(from.forest(), lease, *chunk.get(), form, form.type,
                                                    from.missing, numbers.data()))
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

/// Forest._stream(X, output, name, missing, columns, extra): a capsule of predictions of Arrow's rows.
PyObject* stream(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *rows = nullptr, *output = nullptr, *missing = nullptr, *columns = nullptr, *extra = nullptr;
    const char* name = nullptr;
    auto made = std::make_unique<Stream>();
    if (PyArg_ParseTuple(args, "OOsOOO", &rows, &output, &name, &missing, &columns, &extra) == 0 ||
        !find_output(output, made->output))
      return nullptr;
    if (missing != Py_None) made->missing = PyFloat_AsDouble(missing);
    if (PyErr_Occurred() != nullptr) return nullptr;
    made->self = Ref::share(self);
    made->rows = Ref::share(rows);
    made->columns = Ref::share(columns);
    made->extra = Ref::share(extra);
    made->name = name;
    if (!has_stream(made->forest(), made->output)) return nullptr;
    if (!made->reader.open(self, rows, columns, extra, made->order)) return nullptr;
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
