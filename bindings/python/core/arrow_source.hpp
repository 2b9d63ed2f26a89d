// Rows of Arrow's C stream and C data interfaces as the core reads them.
#pragma once

#include "bindings/python/core/python.hpp"

#include <forestvm/forestvm.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "bindings/python/core/column_parts.hpp"
#include "bindings/python/core/errors.hpp"
#include "bindings/python/core/forest.hpp"

// Arrow's C stream interface, https://arrow.apache.org/docs/format/CStreamInterface.html.
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

namespace forestvm::python {

/// The arrays of an object, one after the other.
class Chunks {
 public:
  /// Asks the object for its arrays. `order` has the schema of the last rows, and gets the object's schema; it must
  /// outlive this object. Returns false with a Python exception set if the object has no arrays.
  bool open(PyObject* object, ArrowOrder& order);

  ArrowSchema& schema() { return *schema_; }

  /// Moves the next array to `chunk`, which is empty after the last one. Returns false with a Python exception set if
  /// there was an error.
  bool next(Owned<ArrowArray>& chunk);

 private:
  bool open_stream(PyObject* object, ArrowOrder& order);
  bool open_array(PyObject* object);
  bool open_batch(PyObject* object, ArrowOrder& order);
  bool read_schema(Owned<ArrowSchema>& schema);
  bool fail(int code);

  Ref capsule_;
  ArrowArrayStream* stream_ = nullptr;
  ArrowArray* only_ = nullptr;
  ArrowSchema* schema_ = nullptr;
  Owned<ArrowSchema> own_schema_;
  Owned<ArrowArray> own_array_;
};

/// Returns the kind of a producer. `order` remembers the kind of the last object's type.
ArrowProducer producer_of(PyObject* object, ArrowOrder& order);

/// Cuts a polars.DataFrame into parts of at most 32 MiB, because polars copies rows in several chunks when it exports
/// them, and keeps the copy for as long as the exported object. All other tables are one part.
class TableParts {
 public:
  /// Begins with the first row of a table, which must outlive this object. `order` has the table's kind. Returns false
  /// with a Python exception set if the table does not tell its size.
  bool open(PyObject* table, const ArrowOrder& order);

  std::size_t row_count() const { return row_count_; }

  /// Returns the next part; there is at least one. After the last part, or if an error sets a Python exception, returns
  /// an empty reference.
  Ref next();

 private:
  PyObject* table_ = nullptr;
  std::size_t row_count_ = 0, step_ = 0, next_ = 0;
  bool begun_ = false;
};

/// Returns whether the columns in `order` were matched with these options. A null option stands for its default.
bool has_options(const ArrowOrder& order, PyObject* columns, PyObject* extra);

/// Rows in tables and streams of Arrow, with the feature of each column.
class ArrowSource {
 public:
  /// Opens an object's rows and matches their columns. `columns` and `extra` are the options, or null. `order` is the
  /// order that was found last; it must outlive this object. Returns false with a Python exception set if that fails.
  bool open(PyObject* forest, PyObject* object, PyObject* columns, PyObject* extra, ArrowOrder& order);

  bool next(Owned<ArrowArray>& chunk) { return chunks_.next(chunk); }

  /// Calls `take` with a chunk's rows, which it may get in several parts, because values that equal `missing` are
  /// marked first. Returns false with a Python exception set if that fails, or if `take` returns false.
  template <class Take>
  bool each_part(const Forest& forest, const ContextPool::Lease& lease, const ArrowArray& chunk,
                 std::optional<double> missing, const Take& take) {
    const auto rows = columns_of(forest, lease, chunk);
    if (!rows || !missing) return rows && take(*rows);
    MissingNumber number(*missing, forest.program.meta().row_type);
    for (std::size_t begin = 0; begin < rows->count;) {
      const auto marked = number.mark(*rows, begin);
      if (!marked) return raise_unsupported(marked.error()) != nullptr;
      if (!take(*marked)) return false;
      begin += marked->count;
    }
    return true;
  }

  /// Predicts a chunk. Returns false with a Python exception set if that fails.
  bool predict(Forest& forest, const ContextPool::Lease& lease, const ArrowArray& chunk,
               const OutputForm& form, ResultType type, std::optional<double> missing, void* out);

 private:
  /// Returns a chunk's rows; nothing, with a Python exception set, if they cannot be read.
  std::optional<ColumnRows> columns_of(const Forest& forest, const ContextPool::Lease& lease,
                                       const ArrowArray& chunk);

  Chunks chunks_;
  const ArrowOrder* order_ = nullptr;
};

/// The chunks of an object's rows, one after the other, of all parts of a polars.DataFrame.
class ArrowReader {
 public:
  /// Opens rows as ArrowSource::open does. `forest` and all others must live as long.
  bool open(PyObject* forest, PyObject* rows, PyObject* columns, PyObject* extra, ArrowOrder& order);

  /// Moves the next chunk to `chunk`, which is empty after the last one. Returns false with a Python exception set if
  /// there was an error.
  bool next(Owned<ArrowArray>& chunk);

  ArrowSource& source() { return source_; }

 private:
  bool open_part();

  PyObject *forest_ = nullptr, *columns_ = nullptr, *extra_ = nullptr;
  ArrowOrder* order_ = nullptr;
  TableParts parts_;  ///< Empty for rows that are no polars.DataFrame.
  Ref part_;          ///< The rows that `source_` reads.
  ArrowSource source_;
};

}  // namespace forestvm::python
