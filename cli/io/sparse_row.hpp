// Fills dense rows with the values that sparse rows list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "cli/io/table.hpp"

namespace forestvm::cli {

template <class Number>
class SparseRows {
 public:
  explicit SparseRows(const RowForm& form)
      : absent_(form.absent == Absent::Zero && !(form.missing && form.missing->as<Number>() == 0)
                    ? Number{0}
                    : std::numeric_limits<Number>::quiet_NaN()),
        seen_(form.width) {}

  /// Appends a row whose values are all absent to `values`.
  void begin_row(std::vector<Number>& values) {
    begin_ = values.size();
    values.resize(begin_ + seen_.size(), absent_);
    ++row_;
  }

  /// Sets a value of the row. Returns false if it was set before.
  bool set(std::vector<Number>& values, std::size_t feature, Number value) {
    if (seen_[feature] == row_) return false;
    seen_[feature] = row_;
    values[begin_ + feature] = value;
    return true;
  }

 private:
  Number absent_;
  std::vector<std::uint64_t> seen_;  // the last row that listed each feature, counted from 1
  std::uint64_t row_ = 0;
  std::size_t begin_ = 0;
};

}  // namespace forestvm::cli
