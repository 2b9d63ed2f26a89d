// Forests as expressions of polars: the functions of a plugin in version 0.1 of polars' interface, which is C with
// Arrow's structs. polars calls them on its own threads, which predict without the GIL.
//
// The options of an expression are a pickled dictionary. The first call with an expression's options asks
// forestvm.engines.polars for the forest that they name; later calls find it in a table.
#include "bindings/python/core/python.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>

#include "bindings/c/rows.hpp"
#include "bindings/python/core/arguments.hpp"
#include "bindings/python/core/arrow_export.hpp"
#include "bindings/python/core/column_parts.hpp"
#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/result_array.hpp"

namespace forestvm::python {
namespace {

/// A column as polars passes it, with an array for each chunk. polars treats a column whose private_data is null as an
/// error.
struct SeriesExport {
  ArrowSchema* field;
  ArrowArray** arrays;
  std::size_t len;
  void (*release)(SeriesExport*);
  void* private_data;
};

/// The prediction that an expression asks for.
struct Expression {
  Forest& forest() const { return forest_of(self.get()); }
  const OutputForm& form() const { return forest().form(output); }

  Ref self;
  Output output{};
  std::optional<double> missing;  ///< The number that is missing, besides NaN.
  c_api::Matched matched{};
  std::vector<std::uint32_t> features;  ///< The feature of each column: 0, 1, ...
};

using ExpressionPointer = std::shared_ptr<const Expression>;

/// A table of the last kMaxKept expressions. An expression that is needed again after it was dropped is opened again.
class Expressions {
 public:
  ExpressionPointer find(std::string_view options) {
    const std::lock_guard lock(mutex_);
    const auto at =
        std::find_if(kept_.begin(), kept_.end(), [&](const auto& entry) { return entry.first == options; });
    if (at == kept_.end()) return nullptr;
    std::rotate(kept_.begin(), at, at + 1);
    return kept_.front().second;
  }

  void keep(std::string_view options, ExpressionPointer expression) {
    ExpressionPointer
        dropped;  // released after the lock: the release waits for the GIL, whose holder may wait for it
    const std::lock_guard lock(mutex_);
    if (kept_.size() == kMaxKept) {
      dropped = std::move(kept_.back().second);
      kept_.pop_back();
    }
    kept_.emplace(kept_.begin(), options, std::move(expression));
  }

 private:
  static constexpr std::size_t kMaxKept = 16;

  std::mutex mutex_;
  std::vector<std::pair<std::string, ExpressionPointer>> kept_;  ///< The last used first.
};

/// Returns the table of this process. It is never destroyed, because its forests cannot be once Python has ended.
Expressions& expressions() {
  static Expressions* const table = new Expressions;
  return *table;
}

void destroy(const Expression* expression) {
  const WithGil gil;
  delete expression;
}

/// Asks forestvm.engines.polars for a forest and the options of its call. Returns null with a Python exception set if
/// that fails.
Expression* open_expression(std::string_view options) {
  const Ref module = Ref::take(PyImport_ImportModule("forestvm.engines.polars"));
  if (!module) return nullptr;
  const Ref opened =
      Ref::take(PyObject_CallMethod(module.get(), "_opened", "y#", options.data(), options.size()));
  PyObject *forest = nullptr, *output = nullptr, *missing = nullptr;
  int by_position = 0;
  auto made = std::make_unique<Expression>();
  if (!opened || PyArg_ParseTuple(opened.get(), "OOOp", &forest, &output, &missing, &by_position) == 0 ||
      !find_output(output, made->output))
    return nullptr;
  if (missing != Py_None) made->missing = PyFloat_AsDouble(missing);
  if (PyErr_Occurred() != nullptr) return nullptr;
  made->matched = by_position != 0 ? c_api::Matched::ByPosition : c_api::Matched::ByName;
  made->self = Ref::share(forest);
  if (!has_stream(made->forest(), made->output)) return nullptr;
  made->features.resize(made->forest().num_features);
  std::iota(made->features.begin(), made->features.end(), 0U);
  return made.release();
}

Result<ExpressionPointer> expression_of(std::string_view options) {
  if (ExpressionPointer known = expressions().find(options)) return known;
  ExpressionPointer made;
  {
    const WithGil gil;
    Expression* opened = nullptr;
    const Ref done = Ref::take(guarded([&] {
      opened = open_expression(options);
      return opened == nullptr ? nullptr : Py_NewRef(Py_None);
    }));
    if (!done) return usage(taken_error());
    made = ExpressionPointer(opened, destroy);
  }
  expressions().keep(options, made);
  return made;
}

/// The columns of a call. They are the plugin's to release.
class Columns {
 public:
  Columns(SeriesExport* series, std::size_t count) : series_(series), count_(count) {}
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;
  ~Columns() {
    for (std::size_t i = 0; i < count_; ++i) {
      for (ArrowArray* const array : chunks(i))
        if (array->release != nullptr) array->release(array);
      if (series_[i].release != nullptr) series_[i].release(&series_[i]);
    }
  }

  std::size_t count() const { return count_; }
  ArrowSchema* field(std::size_t i) const { return series_[i].field; }
  std::span<ArrowArray* const> chunks(std::size_t i) const { return {series_[i].arrays, series_[i].len}; }

  /// Returns the number of rows, which all columns must have.
  Result<std::int64_t> rows() const {
    std::int64_t rows = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      std::int64_t length = 0;
      for (const ArrowArray* const array : chunks(i)) length += array->length;
      if (i != 0 && length != rows)
        return usage("the columns have different lengths: {} and {}", rows, length);
      rows = length;
    }
    return rows;
  }

 private:
  SeriesExport* series_;
  std::size_t count_;
};

/// Cuts columns whose chunks end at different rows into tables in which each column is one array.
class Tables {
 public:
  explicit Tables(const Columns& columns)
      : columns_(columns), cursors_(columns.count()), arrays_(columns.count()) {
    for (std::size_t i = 0; i < columns.count(); ++i) {
      fields_.push_back(columns.field(i));
      pointers_.push_back(&arrays_[i]);
    }
    schema_.format = "+s";
    schema_.n_children = static_cast<std::int64_t>(fields_.size());
    schema_.children = fields_.data();
    schema_.release = [](ArrowSchema*) {};
    table_.n_buffers = 1;
    table_.buffers = &no_bits_;
    table_.n_children = schema_.n_children;
    table_.children = pointers_.data();
    table_.release = [](ArrowArray*) {};
  }

  const ArrowSchema& schema() const { return schema_; }

  /// Returns the next table, of at most `rows` rows, or null if no column has more.
  const ArrowArray* next(std::int64_t rows) {
    table_.length = rows;
    for (std::size_t i = 0; i < cursors_.size(); ++i) {
      const auto chunks = columns_.chunks(i);
      Cursor& at = cursors_[i];
      while (at.chunk < chunks.size() && at.row == chunks[at.chunk]->length) at = {at.chunk + 1, 0};
      if (at.chunk == chunks.size()) return nullptr;
      table_.length = std::min(table_.length, chunks[at.chunk]->length - at.row);
    }
    for (std::size_t i = 0; i < cursors_.size(); ++i) {
      const ArrowArray& chunk = *columns_.chunks(i)[cursors_[i].chunk];
      arrays_[i] = chunk;
      arrays_[i].offset += cursors_[i].row;
      arrays_[i].length = table_.length;
      if (table_.length != chunk.length && chunk.null_count != 0) arrays_[i].null_count = -1;
      cursors_[i].row += table_.length;
    }
    return &table_;
  }

 private:
  /// The next row of a column.
  struct Cursor {
    std::size_t chunk = 0;
    std::int64_t row = 0;
  };

  const Columns& columns_;
  std::vector<Cursor> cursors_;
  std::vector<ArrowArray> arrays_;
  std::vector<ArrowArray*> pointers_;
  std::vector<ArrowSchema*> fields_;
  const void* no_bits_ = nullptr;
  ArrowArray table_{};
  ArrowSchema schema_{};
};

/// Returns the field of an expression's predictions.
ArrowSchema field_of(const OutputForm& form, const char* name) {
  const std::string own = name == nullptr ? "" : name;
  if (form.flat) return make_schema(format_of(form.type), own, {});
  return make_schema(formatted("+w:{}", form.width), own, {make_schema(format_of(form.type), "item", {})});
}

/// Writes the predictions of rows to `out`.
Result<void> write_rows(const Expression& expression, const ContextPool::Lease& lease, const ColumnRows& rows,
                        std::byte* out) {
  Forest& forest = expression.forest();
  const OutputForm& form = expression.form();
  if (!expression.missing) return write_output(forest, lease, rows, form, form.type, out);
  MissingNumber number(*expression.missing, forest.program.meta().row_type);
  for (std::size_t begin = 0; begin < rows.count;) {
    FVM_ASSIGN(const ColumnRows marked, number.mark(rows, begin));
    FVM_TRY(
        write_output(forest, lease, marked, form, form.type, out + begin * form.width * bytes_of(form.type)));
    begin += marked.count;
  }
  return {};
}

/// Predicts all rows. The numbers of several chunks follow one another.
Result<ArrowArray> predictions(const Expression& expression, const Columns& columns) {
  Forest& forest = expression.forest();
  const OutputForm& form = expression.form();
  if (columns.count() != forest.num_features)
    return usage("{} columns for {} features", columns.count(), forest.num_features);
  FVM_ASSIGN(const std::int64_t rows, columns.rows());
  const std::size_t row_size = form.width * bytes_of(form.type);
  std::vector<std::byte> numbers(static_cast<std::size_t>(rows) * row_size);
  const ContextPool::Lease lease = forest.contexts.take(*forest.predictor);
  Tables tables(columns);
  std::byte* out = numbers.data();
  for (std::int64_t left = rows; left > 0;) {
    const ArrowArray* const table = tables.next(left);
    FVM_CHECK(table != nullptr);
    FVM_ASSIGN(const AnyRows known,
               c_api::matched_arrow(*table, tables.schema(), expression.features, expression.matched,
                                    forest.names, lease.workspace().columns));
    FVM_TRY(write_rows(expression, lease, std::get<ColumnRows>(known), out));
    out += static_cast<std::size_t>(table->length) * row_size;
    left -= table->length;
  }
  const auto count = static_cast<std::size_t>(rows);
  if (form.flat) return make_array(count, std::move(numbers));
  return make_array(count, {}, {make_array(count * form.width, std::move(numbers))});
}

/// Owns what polars reads a column from. polars takes the array out of it, and never its field.
struct SeriesOwner {
  ArrowSchema field;
  ArrowArray array;
  ArrowArray* arrays[1];
};

void release_series(SeriesExport* series) {
  auto* const owner = static_cast<SeriesOwner*>(series->private_data);
  owner->field.release(&owner->field);
  series->release = nullptr;
  delete owner;
}

/// The text of this thread's last error, which polars asks for on the same thread.
std::string& last_error() {
  thread_local std::string text;
  return text;
}

/// Runs `work` for polars, and keeps the text of its error.
template <class Work>
void run(const Work& work) noexcept {
  try {
    const Result<void> done = work();
    if (!done) last_error() = done.error().text();
  } catch (const std::exception& error) {
    last_error() = error.what();
  }
}

std::string_view options_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace
}  // namespace forestvm::python

using namespace forestvm;
using namespace forestvm::python;

extern "C" {

/// Returns the version of polars' interface: the major number, then the minor one in 16 bits.
[[gnu::visibility("default")]] std::uint32_t _polars_plugin_get_version() { return 0U << 16 | 1U; }

[[gnu::visibility("default")]] const char* _polars_plugin_get_last_error_message() {
  return last_error().c_str();
}

/// Sets `out` to the field of the predictions. polars keeps the columns' fields.
[[gnu::visibility("default")]] void _polars_plugin_field_forestvm_predict(const ArrowSchema* fields,
                                                                          std::size_t count, ArrowSchema* out,
                                                                          const std::uint8_t* options,
                                                                          std::size_t size) {
  run([&]() -> Result<void> {
    FVM_ASSIGN(const ExpressionPointer expression, expression_of(options_of(options, size)));
    *out = field_of(expression->form(), count == 0 ? "" : fields[0].name);
    return {};
  });
}

/// Sets `out` to the predictions of `columns`, which it releases.
[[gnu::visibility("default")]] void _polars_plugin_forestvm_predict(SeriesExport* columns, std::size_t count,
                                                                    const std::uint8_t* options,
                                                                    std::size_t size, SeriesExport* out,
                                                                    const void* /*context*/) {
  const Columns given(columns, count);
  run([&]() -> Result<void> {
    FVM_ASSIGN(const ExpressionPointer expression, expression_of(options_of(options, size)));
    auto owner = std::make_unique<SeriesOwner>();
    FVM_ASSIGN(owner->array, predictions(*expression, given));
    owner->field = field_of(expression->form(), count == 0 ? "" : given.field(0)->name);
    owner->arrays[0] = &owner->array;
    SeriesOwner* const made = owner.release();
    *out = {&made->field, made->arrays, 1, release_series, made};
    return {};
  });
}

}  // extern "C"
