// See result_array.hpp.
#include "bindings/python/core/result_array.hpp"

#include <string>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>

#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/numpy.hpp"

namespace forestvm::python {
namespace {

/// The least number of tree walks for which a call releases the GIL. They take about ten times as long as releasing and
/// taking it.
constexpr std::size_t kLongCall = 1024;
/// The number of tree walks that take about as long as one tree's contributions for one row. Interactions take longer.
constexpr std::size_t kContributionCost = 64;

std::string shape_text(const OutputForm& form, std::size_t rows) {
  return formatted("({}{}", rows, form.flat ? ",)" : formatted(", {})", form.width));
}

bool is_score(ResultType type) { return type == ResultType::Float32 || type == ResultType::Float64; }

bool open_out(Buffer& buffer, PyObject* out) {
  if (open_array(buffer, out, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) return true;
  PyErr_Clear();
  raise(usage("out: expected an array that can be written and lies in one piece, row by row (C order)"));
  return false;
}

/// Returns the type that `dtype` asks for; nothing, with a Python exception set, if it does not suit.
std::optional<ResultType> asked_type(const OutputForm& form, PyObject* dtype) {
  const auto asked = result_type_of(dtype);
  if (!asked || is_score(*asked) == is_score(form.type)) return asked;
  raise(usage(is_score(form.type) ? "dtype: these predictions are float32 or float64"
                                  : "dtype: labels and leaf numbers are int32 or int64"));
  return std::nullopt;
}

/// Returns the type of the numbers in `out`; nothing, with a Python exception set, if it does not suit the output, or
/// is not the one that `dtype` asks for, which may be null.
std::optional<ResultType> type_of_out(const Buffer& out, const OutputForm& form, PyObject* dtype) {
  const auto asked = dtype == nullptr ? std::nullopt : asked_type(form, dtype);
  if (dtype != nullptr && !asked) return std::nullopt;
  const auto type = result_type_of(*out);
  if (type && is_score(*type) == is_score(form.type) && (!asked || *type == *asked)) return type;
  raise(usage(asked                 ? "out: has another type than dtype asks for"
              : is_score(form.type) ? "out: these predictions are float32 or float64"
                                    : "out: labels and leaf numbers are int32 or int64"));
  return std::nullopt;
}

/// Expands each of `count` numbers p, which are the second half of `numbers`, to 1 - p and p.
template <class Number>
void expand_pairs(void* numbers, std::size_t count) {
  auto* const at = static_cast<Number*>(numbers);
  for (std::size_t i = 0; i < count; ++i) {
    const Number p = at[count + i];
    at[2 * i] = Number{1} - p;
    at[2 * i + 1] = p;
  }
}

}  // namespace

std::optional<ResultType> type_to_write(const OutputForm& form, PyObject* out, PyObject* dtype) {
  if (out == nullptr) return dtype == nullptr ? form.type : asked_type(form, dtype);
  Buffer buffer;
  if (!open_out(buffer, out)) return std::nullopt;
  return type_of_out(buffer, form, dtype);
}

bool ResultArray::open(const OutputForm& form, std::size_t rows, PyObject* out, PyObject* dtype) {
  if (out != nullptr) return take(form, rows, out, dtype);
  const auto type = type_to_write(form, nullptr, dtype);
  if (!type) return false;
  type_ = *type;
  array_ = new_array(rows, form.width, form.flat, type_);
  return array_ && open_array(buffer_, array_.get(), PyBUF_WRITABLE);
}

bool ResultArray::take(const OutputForm& form, std::size_t rows, PyObject* out, PyObject* dtype) {
  if (!open_out(buffer_, out)) return false;
  const auto type = type_of_out(buffer_, form, dtype);
  if (!type) return false;
  const bool fits = buffer_->ndim == (form.flat ? 1 : 2) &&
                    buffer_->shape[0] == static_cast<Py_ssize_t>(rows) &&
                    (form.flat || buffer_->shape[1] == static_cast<Py_ssize_t>(form.width));
  if (!fits) {
    raise(usage("out: has another shape than the predictions, {}", shape_text(form, rows)));
    return false;
  }
  type_ = *type;
  array_ = Ref::share(out);
  return true;
}

Result<void> write_output(Forest& forest, const ContextPool::Lease& lease, const AnyRows& rows,
                          const OutputForm& form, ResultType type, void* out) {
  const std::size_t count = row_count(rows);
  const bool pairs = form.computed != form.width;
  void* const to = pairs ? static_cast<std::byte*>(out) + count * bytes_of(type) : out;
  if (forest.call.base_margin.data == nullptr) {
    FVM_TRY(forest.predictor->predict_with(*lease, rows, form.kind, type, forest.call, to));
  } else {
    FVM_ASSIGN(const CallOptions call, forest.next_call(count));
    FVM_TRY(forest.predictor->predict_with(*lease, rows, form.kind, type, call, to));
  }
  if (pairs) type == ResultType::Float64 ? expand_pairs<double>(out, count) : expand_pairs<float>(out, count);
  return {};
}

bool write_predictions(Forest& forest, const ContextPool::Lease& lease, const AnyRows& rows,
                       const OutputForm& form, ResultType type, void* out) {
  const Result<void> done = [&] {
    const std::size_t factor = explains_scores(form.kind) ? kContributionCost : 1;
    const WithoutGil free(row_count(rows) * forest.row_cost * factor >= kLongCall);
    return write_output(forest, lease, rows, form, type, out);
  }();
  if (!done) raise(done.error());
  return done.ok();
}

PyObject* answer(Forest& forest, const AnyRows& rows, Output output, PyObject* out, PyObject* dtype) {
  const OutputForm& form = forest.form(output);
  ResultArray result;
  if (!result.open(form, row_count(rows), out, dtype)) return nullptr;
  const ContextPool::Lease lease = forest.contexts.take(*forest.predictor);
  return write_predictions(forest, lease, rows, form, result.type(), result.data()) ? result.release()
                                                                                    : nullptr;
}

}  // namespace forestvm::python
