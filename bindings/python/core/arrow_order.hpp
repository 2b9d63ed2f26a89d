// The order of the columns of the last Arrow rows, which a workspace keeps so that the next ones with the same columns
// take less time.
#pragma once

#include "bindings/python/core/python.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/arrow_c_data.h>

namespace forestvm::python {

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

/// The kinds of objects that give rows of Arrow. Each kind has its own fastest way of reading.
enum class ArrowProducer : std::uint8_t {
  Stream,      ///< Has a stream of arrays.
  Array,       ///< Has one array. Making a stream of it can take three times as long.
  ArrowBatch,  ///< pyarrow.RecordBatch: an array, and a schema that can be compared faster than it is exported.
  ArrowTable,   ///< pyarrow.Table: a stream, and a schema that can be compared faster than it is exported.
  PolarsFrame,  ///< polars.DataFrame: a stream, and a method that is faster for a few rows.
};

/// The feature of each column of the last Arrow rows, and the rows' schema and options.
struct ArrowOrder {
  std::vector<std::string> names;       ///< The columns' names.
  std::vector<std::uint32_t> features;  ///< The feature of each column, or c_api::kNoFeature.
  std::string columns, extra;           ///< The options with which they were matched.
  bool known = false;

  Ref producer_type;  ///< The type of the last object.
  ArrowProducer producer{};
  Ref schema;  ///< The schema of the last rows of pyarrow, and what it is in Arrow's C data interface.
  Owned<ArrowSchema> exported_schema;
};

}  // namespace forestvm::python
