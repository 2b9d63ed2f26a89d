// Rows in columns of NumPy: the method Forest._predict_columns, and the numbers of categories for it.
#include "bindings/python/core/python.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/python/core/arguments.hpp"
#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/forest.hpp"
#include "bindings/python/core/numpy.hpp"
#include "bindings/python/core/result_array.hpp"

namespace forestvm::python {
namespace {

Error bug(const char* what) { return fail(ErrorCode::Internal, std::string("forestvm._frames: ") + what); }

/// The columns of a call, and the views that keep their memory alive.
class Columns {
 public:
  explicit Columns(std::size_t count) : count_(count) { views_.reserve(64); }

  /// Adds an array, or a tuple (indices, numbers of the categories, whether some are refused). Returns false with a
  /// Python exception set if that fails.
  bool add(PyObject* object) {
    PyObject *values = object, *categories = nullptr;
    int refuses = 0;
    if (PyTuple_Check(object) && PyArg_ParseTuple(object, "OOp", &values, &categories, &refuses) == 0)
      return false;
    Column column;
    const Py_buffer* const view = open(values);
    if (view == nullptr) return false;
    const auto type = row_type_of(*view);
    if (!type || static_cast<std::size_t>(view->shape[0]) != count_)
      return raise(bug("a column of another type or length")) != nullptr;
    column.values = view->buf;
    column.type = *type;
    if (categories != nullptr) {
      const Py_buffer* const table = open(categories);
      if (table == nullptr) return false;
      if (row_type_of(*table) != RowType::Float64) return raise(bug("categories of another type")) != nullptr;
      column.form = ColumnForm::Indices;
      column.negative_is_missing = true;
      column.categories = static_cast<const double*>(table->buf);
      column.category_count = static_cast<std::size_t>(table->shape[0]);
      column.refuses = refuses != 0;
    }
    columns_.push_back(column);
    return true;
  }

  ColumnRows rows() const { return {.count = count_, .columns = columns_}; }

 private:
  const Py_buffer* open(PyObject* array) {
    Buffer& view = views_.emplace_back();
    if (!open_array(view, array, PyBUF_ND | PyBUF_FORMAT)) return nullptr;
    if (view->ndim == 1) return &*view;
    raise(bug("a column with several dimensions"));
    return nullptr;
  }

  std::size_t count_;
  std::vector<Buffer> views_;
  std::vector<Column> columns_;
};

/// The columns of a pandas frame. pandas keeps columns of one type together in a block, a matrix whose rows are
/// columns.
class Blocks {
 public:
  /// Reads the blocks in a list. Column i of the frame is row block_rows[i] of block numbers[i]. Returns false, perhaps
  /// with a Python exception set, if the blocks are not as they should be, hold no numbers, or are large and must be
  /// copied.
  bool open(PyObject* list, PyObject* numbers, PyObject* block_rows, std::size_t column_count) {
    Buffer number_buffer, row_buffer;
    if (!open_blocks(list) || !open_indices(number_buffer, numbers, column_count) ||
        !open_indices(row_buffer, block_rows, column_count))
      return false;
    const auto* const number = static_cast<const std::int64_t*>(number_buffer->buf);
    const auto* const block_row = static_cast<const std::int64_t*>(row_buffer->buf);
    columns_.reserve(column_count);
    for (std::size_t i = 0; i < column_count; ++i) {
      if (number[i] < 0 || static_cast<std::size_t>(number[i]) >= blocks_.size()) return false;
      const Py_buffer& block = *blocks_[static_cast<std::size_t>(number[i])];
      if (block_row[i] < 0 || block_row[i] >= block.shape[0] || !add(block, block_row[i], column_count))
        return false;
    }
    return true;
  }

  ColumnRows rows() const { return {.count = static_cast<std::size_t>(count_), .columns = columns_}; }

 private:
  /// The most values of a frame whose columns are copied if the numbers of a column are not contiguous.
  static constexpr std::size_t kMaxCopied = std::size_t{1} << 18;

  bool open_blocks(PyObject* list) {
    const Py_ssize_t count = PyList_Size(list);
    blocks_.reserve(static_cast<std::size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      Buffer& block = blocks_.emplace_back();
      if (!open_array(block, PyList_GetItem(list, i), PyBUF_STRIDES | PyBUF_FORMAT) || block->ndim != 2)
        return false;
      if (i == 0) count_ = block->shape[1];
      if (block->shape[1] != count_) return false;
    }
    return count != 0;
  }

  static bool open_indices(Buffer& buffer, PyObject* array, std::size_t count) {
    return open_array(buffer, array, PyBUF_ND | PyBUF_FORMAT) && row_type_of(*buffer) == RowType::Int64 &&
           buffer->ndim == 1 && static_cast<std::size_t>(buffer->shape[0]) == count;
  }

  bool add(const Py_buffer& block, std::int64_t block_row, std::size_t column_count) {
    const auto type = row_type_of(block);
    if (!type) return false;
    Column column{.values = static_cast<const std::byte*>(block.buf) + block_row * block.strides[0],
                  .type = *type};
    if (count_ > 1 && block.strides[1] != block.itemsize) {
      if (static_cast<std::size_t>(count_) * column_count > kMaxCopied) return false;
      const auto size = static_cast<std::size_t>(block.itemsize);
      std::vector<std::byte>& copy = copies_.emplace_back(static_cast<std::size_t>(count_) * size);
      const auto* from = static_cast<const std::byte*>(column.values);
      for (std::byte* to = copy.data(); to != copy.data() + copy.size(); to += size, from += block.strides[1])
        std::memcpy(to, from, size);
      column.values = copy.data();
    }
    columns_.push_back(column);
    return true;
  }

  Py_ssize_t count_ = 0;
  std::vector<Buffer> blocks_;
  std::vector<std::vector<std::byte>> copies_;
  std::vector<Column> columns_;
};

/// Returns the number that a category stands for, NaN if it is missing, or an error of CategoryTexts::number_of.
Result<double> number_of(const CategoryTexts& texts, std::uint32_t feature, PyObject* category) {
  if (category == Py_None) return std::numeric_limits<double>::quiet_NaN();
  if (PyUnicode_Check(category)) {
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(category, &size);
    if (text == nullptr) {
      PyErr_Clear();
      return refused("a text that is not Unicode");
    }
    const std::string_view view(text, static_cast<std::size_t>(size));
    if (!texts.takes(feature)) return CategoryTexts::wants_number(view);
    return texts.number_of(feature, view);
  }
  const double number = PyFloat_AsDouble(category);
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return refused("a category that is neither a text nor a number");
  }
  if (std::isnan(number)) return number;
  return texts.number_of(feature, number);
}

}  // namespace

/// Forest._predict_columns(columns, rows, output, out): predicts `rows` rows to the array `out`. `columns` is a list of
/// a column for each feature, as Columns::add takes it.
PyObject* predict_columns(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *list = nullptr, *name = nullptr, *out = nullptr;
    Py_ssize_t rows = 0;
    Output output{};
    if (PyArg_ParseTuple(args, "O!nOO", &PyList_Type, &list, &rows, &name, &out) == 0 ||
        !find_output(name, output))
      return nullptr;
    Forest& forest = forest_of(self);
    if (static_cast<std::size_t>(PyList_Size(list)) != forest.num_features)
      return raise(bug("a wrong number of columns"));
    Columns columns(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < forest.num_features; ++i)
      if (!columns.add(PyList_GetItem(list, static_cast<Py_ssize_t>(i)))) return nullptr;
    return answer(forest, columns.rows(), output, out, nullptr);
  });
}

/// Forest._predict_blocks(blocks, numbers, block_rows, output, out, dtype): a pandas frame, as Blocks reads it. Returns
/// NotImplemented if it cannot be read so.
PyObject* predict_blocks(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *list = nullptr, *numbers = nullptr, *block_rows = nullptr, *name = nullptr, *out = nullptr,
             *dtype = nullptr;
    Output output{};
    if (PyArg_ParseTuple(args, "O!OOOOO", &PyList_Type, &list, &numbers, &block_rows, &name, &out, &dtype) ==
            0 ||
        !find_output(name, output))
      return nullptr;
    Forest& forest = forest_of(self);
    const bool softmax = output == Output::Proba && forest.probabilities == ProbabilitySource::Softmax;
    Blocks blocks;
    if (softmax || !blocks.open(list, numbers, block_rows, forest.num_features)) {
      PyErr_Clear();
      Py_RETURN_NOTIMPLEMENTED;
    }
    if (!has_output(forest, output)) return nullptr;
    return answer(forest, blocks.rows(), output, out == Py_None ? nullptr : out,
                  dtype == Py_None ? nullptr : dtype);
  });
}

/// Forest._category_numbers(feature, categories, out): writes the numbers of texts and numbers to `out`, an array of
/// float64. Returns the number of the first category that the trainer refuses in a row and the reason, or None.
PyObject* category_numbers(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    unsigned feature = 0;
    PyObject *list = nullptr, *array = nullptr;
    if (PyArg_ParseTuple(args, "IO!O", &feature, &PyList_Type, &list, &array) == 0) return nullptr;
    Buffer out;
    if (!out.open(array, PyBUF_WRITABLE | PyBUF_ND | PyBUF_FORMAT)) return nullptr;
    const Py_ssize_t count = PyList_Size(list);
    if (row_type_of(*out) != RowType::Float64 || out->ndim != 1 || out->shape[0] != count)
      return raise(bug("no room for the numbers of categories"));
    const CategoryTexts& texts = forest_of(self).names.categories();
    std::string reason;
    Py_ssize_t first = count;
    for (Py_ssize_t i = 0; i < count; ++i) {
      const auto number = number_of(texts, feature, PyList_GetItem(list, i));
      static_cast<double*>(out->buf)[i] = number ? *number : std::bit_cast<double>(kRefusedCategory);
      if (number || first < count) continue;
      first = i;
      reason = number.error().message;
    }
    if (first == count) Py_RETURN_NONE;
    return Py_BuildValue("ns", first, reason.c_str());
  });
}

}  // namespace forestvm::python
