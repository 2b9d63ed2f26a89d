// See polars_rows.hpp.
#include "bindings/python/core/polars_rows.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "bindings/python/core/arrow_source.hpp"
#include "bindings/python/core/attributes.hpp"
#include "bindings/python/core/numbers.hpp"

namespace forestvm::python {
namespace {

/// The most rows whose values are read one by one; polars' export of columns is faster for more.
constexpr long kMaxRows = 8;

/// Returns whether a list holds the names of the columns that were matched last.
bool has_names(const ArrowOrder& order, PyObject* list) {
  if (PyList_Check(list) == 0 || PyList_Size(list) != static_cast<Py_ssize_t>(order.names.size()))
    return false;
  for (std::size_t i = 0; i < order.names.size(); ++i) {
    const Ref name = Ref::share(PyList_GetItem(list, static_cast<Py_ssize_t>(i)));
    Py_ssize_t size = 0;
    const char* const text =
        name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8AndSize(name.get(), &size) : nullptr;
    if (text == nullptr || order.names[i] != std::string_view(text, static_cast<std::size_t>(size)))
      return false;
  }
  return true;
}

/// Writes a row's numbers, in the order of the features. Returns false if a value cannot be written.
bool read_row(PyObject* row, const ArrowOrder& order, double* out) {
  if (row == nullptr || PyTuple_Check(row) == 0 ||
      PyTuple_Size(row) != static_cast<Py_ssize_t>(order.features.size()))
    return false;
  for (std::size_t i = 0; i < order.features.size(); ++i) {
    if (order.features[i] == c_api::kNoFeature) continue;
    const auto number = number_in(PyTuple_GetItem(row, static_cast<Py_ssize_t>(i)));
    if (!number) return false;
    out[order.features[i]] = *number;
  }
  return true;
}

/// Does the work of few_rows. Returns false, perhaps with a Python exception set, if the rows cannot be read so.
bool read_rows(PyObject* frame, const ArrowOrder& order, std::size_t num_features,
               std::vector<double>& values) {
  const Ref height = Ref::take(PyObject_GetAttr(frame, name_of(Attribute::Height)));
  const long count = height ? PyLong_AsLong(height.get()) : 0;
  if (count <= 0 || count > kMaxRows) return false;
  const Ref columns = Ref::take(PyObject_GetAttr(frame, name_of(Attribute::Columns)));
  if (!columns || !has_names(order, columns.get())) return false;
  const Ref rows = Ref::take(PyObject_CallMethodObjArgs(frame, name_of(Attribute::Rows), nullptr));
  if (!rows || PyList_Check(rows.get()) == 0 || PyList_Size(rows.get()) != count) return false;
  values.resize(static_cast<std::size_t>(count) * num_features);
  for (long i = 0; i < count; ++i) {
    const Ref row = Ref::share(PyList_GetItem(rows.get(), i));
    if (!read_row(row.get(), order, values.data() + static_cast<std::size_t>(i) * num_features)) return false;
  }
  return true;
}

}  // namespace

std::optional<RowBlock> few_rows(const Forest& forest, const Arguments& given, const ArrowOrder& order,
                                 std::vector<double>& values) {
  if (forest.takes_texts || !has_options(order, given.columns, given.extra)) return std::nullopt;
  const std::size_t width = forest.num_features;
  if (!read_rows(given.rows, order, width, values)) {
    PyErr_Clear();
    return std::nullopt;
  }
  return RowBlock{values.data(), values.size() / width, width, RowType::Float64};
}

}  // namespace forestvm::python
