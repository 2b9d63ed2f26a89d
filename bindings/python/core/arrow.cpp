// See arrow.hpp.
#include "bindings/python/core/arrow.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <forestvm/internal/calls.hpp>

#include "bindings/python/core/arrow_source.hpp"
#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/polars_rows.hpp"
#include "bindings/python/core/result_array.hpp"

namespace forestvm::python {
namespace {

/// Predicts the chunks of one call.
class ArrowCall {
 public:
  ArrowCall(PyObject* self, Output output, const Arguments& given, std::optional<double> missing)
      : self_(self),
        forest_(forest_of(self)),
        form_(forest_.form(output)),
        given_(given),
        missing_(missing),
        lease_(forest_.contexts.take(*forest_.predictor)) {}

  PyObject* run() {
    const ArrowProducer producer = producer_of(given_.rows, order());
    if (producer == ArrowProducer::ArrowTable) return table();
    if (producer == ArrowProducer::PolarsFrame) {
      const auto rows =
          missing_ ? std::nullopt : few_rows(forest_, given_, order(), lease_.workspace().numbers);
      return rows ? few(*rows) : table();
    }
    Owned<ArrowArray> first, second;
    if (!open(given_.rows) || !source_.next(first) || (first && !source_.next(second))) return nullptr;
    if (!second) return only(first);
    return several(std::move(first), std::move(second));
  }

 private:
  ArrowOrder& order() const { return lease_.workspace().arrow; }

  bool open(PyObject* rows) {
    source_ = {};
    return source_.open(self_, rows, given_.columns, given_.extra, order());
  }

  bool predict(const ArrowArray& chunk, ResultType type, void* out) {
    return source_.predict(forest_, lease_, chunk, form_, type, missing_, out);
  }

  std::size_t row_bytes(ResultType type) const { return form_.width * bytes_of(type); }

  PyObject* few(const RowBlock& rows) {
    ResultArray result;
    if (!result.open(form_, rows.count, given_.out, given_.dtype)) return nullptr;
    return write_predictions(forest_, lease_, rows, form_, result.type(), result.data()) ? result.release()
                                                                                         : nullptr;
  }

  PyObject* only(Owned<ArrowArray>& chunk) {
    ResultArray result;
    const std::size_t count = chunk ? static_cast<std::size_t>(chunk->length) : 0;
    if (!result.open(form_, count, given_.out, given_.dtype)) return nullptr;
    if (chunk && !predict(*chunk.get(), result.type(), result.data())) return nullptr;
    return result.release();
  }

  /// Predicts a table, whose number of rows is known, into the result.
  PyObject* table() {
    TableParts parts;
    if (!parts.open(given_.rows, order())) return nullptr;
    ResultArray result;
    if (!result.open(form_, parts.row_count(), given_.out, given_.dtype)) return nullptr;
    std::size_t done = 0;
    while (const Ref part = parts.next())
      if (!fill(result, part.get(), parts.row_count(), done)) return nullptr;
    if (PyErr_Occurred() != nullptr) return nullptr;
    if (done == parts.row_count()) return result.release();
    return raise(usage("the Arrow stream has fewer rows than the table's length"));
  }

  /// Predicts an object's rows into a result of `count` rows, from row `done` on, to which the number of rows is added.
  bool fill(const ResultArray& result, PyObject* rows, std::size_t count, std::size_t& done) {
    if (!open(rows)) return false;
    Owned<ArrowArray> chunk;
    for (; source_.next(chunk) && chunk; done += static_cast<std::size_t>(chunk->length)) {
      const bool fits = chunk->length >= 0 && static_cast<std::size_t>(chunk->length) <= count - done;
      if (!fits) return raise(usage("the Arrow stream has more rows than the table's length")) != nullptr;
      void* const out = static_cast<std::byte*>(result.data()) + done * row_bytes(result.type());
      if (!predict(*chunk.get(), result.type(), out)) return false;
    }
    return PyErr_Occurred() == nullptr;
  }

  /// Predicts chunks as they come, because their number of rows is not known before the last one.
  PyObject* several(Owned<ArrowArray> first, Owned<ArrowArray> second) {
    const auto type = type_to_write(form_, given_.out, given_.dtype);
    if (!type) return nullptr;
    const std::size_t bytes = row_bytes(*type);
    std::vector<std::byte> numbers;
    std::size_t count = 0;
    const auto add = [&](Owned<ArrowArray>& chunk) {
      const auto rows = static_cast<std::size_t>(chunk->length);
      numbers.resize((count + rows) * bytes);
      void* const out = numbers.data() + count * bytes;
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
  std::optional<double> missing_;
  ContextPool::Lease lease_;
  ArrowSource source_;
};

/// The type of the rows that were read last. It may have been freed since, and another type may have its address.
std::atomic<PyTypeObject*> last_type{nullptr};

}  // namespace

bool is_known_arrow(PyObject* object) { return Py_TYPE(object) == last_type.load(std::memory_order_relaxed); }

PyObject* predict_arrow(PyObject* self, Output output, const Arguments& given) {
  return ArrowCall(self, output, given, std::nullopt).run();
}

/// Forest._predict_arrow(X, output, out, dtype, missing, columns, extra): predicts the rows of an object with Arrow's
/// methods. The arguments after the output are those of Forest.predict, or None. Returns the array of the predictions.
PyObject* predict_arrow(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Arguments given;
    PyObject* name = nullptr;
    Output output{};
    if (PyArg_ParseTuple(args, "OOOOOOO", &given.rows, &name, &given.out, &given.dtype, &given.missing,
                         &given.columns, &given.extra) == 0 ||
        !find_output(name, output))
      return nullptr;
    for (PyObject** const object : {&given.out, &given.dtype, &given.missing, &given.columns, &given.extra})
      if (*object == Py_None) *object = nullptr;
    std::optional<double> missing;
    if (given.missing != nullptr) missing = PyFloat_AsDouble(given.missing);
    if (PyErr_Occurred() != nullptr) return nullptr;
    PyObject* const result = ArrowCall(self, output, given, missing).run();
    if (result != nullptr) last_type.store(Py_TYPE(given.rows), std::memory_order_relaxed);
    return result;
  });
}

}  // namespace forestvm::python
