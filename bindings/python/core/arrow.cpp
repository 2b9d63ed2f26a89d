// See arrow.hpp.
#include "bindings/python/core/arrow.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "bindings/python/core/arrow_source.hpp"
#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/result_array.hpp"

namespace forestvm::python {
namespace {

/// Predicts the chunks of one call.
class ArrowCall {
 public:
  ArrowCall(PyObject* self, Output output, const Arguments& given)
      : self_(self),
        forest_(forest_of(self)),
        form_(forest_.form(output)),
        given_(given),
        lease_(forest_.contexts.take(*forest_.predictor)) {}

  PyObject* run() {
    if (!source_.open(self_, given_.rows, given_.columns, given_.extra, lease_.workspace().arrow))
      return nullptr;
    Owned<ArrowArray> first, second;
    if (!source_.next(first) || (first && !source_.next(second))) return nullptr;
    if (!second) return only(first);
    return several(std::move(first), std::move(second));
  }

 private:
  bool predict(const ArrowArray& chunk, ResultType type, void* out) {
    return source_.predict(forest_, lease_, chunk, form_, type, out);
  }

  PyObject* only(Owned<ArrowArray>& chunk) {
    ResultArray result;
    const std::size_t count = chunk ? static_cast<std::size_t>(chunk->length) : 0;
    if (!result.open(form_, count, given_.out, given_.dtype)) return nullptr;
    if (chunk && !predict(*chunk.get(), result.type(), result.data())) return nullptr;
    return result.release();
  }

  /// Predicts chunks as they come, because their number of rows is not known before the last one.
  PyObject* several(Owned<ArrowArray> first, Owned<ArrowArray> second) {
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
      return rows == 0 || predict(*chunk.get(), *type, out);
    };
    if (!add(first)) return nullptr;
    for (first = {}; second;)
      if (!add(second) || !source_.next(second)) return nullptr;
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
  ArrowSource source_;
};

/// The type of the rows that were read last. It may have been freed since, and another type may have its address.
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
