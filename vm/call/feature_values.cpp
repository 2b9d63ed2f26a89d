// Copies the values of rows that linear leaves read: see forestvm/internal/row_source.hpp.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <variant>

#include <forestvm/core/transform.hpp>
#include <forestvm/internal/row_source.hpp>

#include "vm/call/csr_rows.hpp"
#include "vm/call/read_column.hpp"
#include "vm/call/row_value.hpp"

namespace forestvm {
namespace {

/// Returns a value as linear leaves read it.
template <class Value>
double read_value(const void* values, std::size_t i) {
  const double x = host::to_double(host::value_at<Value>(values, i));
  return std::abs(x) <= kTiny ? 0 : x;
}

/// Implements RowSource::copy_features for each form of rows.
class FeatureCopy {
 public:
  FeatureCopy(std::size_t begin, std::size_t count, std::span<const std::uint32_t> features, double* out)
      : begin_(begin), count_(count), features_(features), out_(out) {}

  void operator()(const RowBlock& rows) const {
    host::with_type(rows.type, [&](auto kind) {
      double* out = out_;
      for (std::size_t row = begin_; row < begin_ + count_; ++row)
        for (const std::uint32_t feature : features_)
          *out++ = read_value<decltype(kind)>(rows.data, row * rows.stride + feature * rows.column_stride);
    });
  }

  void operator()(const CsrRows& rows) const {
    std::fill_n(out_, count_ * features_.size(), static_cast<double>(host::absent_value(rows.absent)));
    const auto read = host::with_type(rows.type, [](auto kind) { return &read_value<decltype(kind)>; });
    double* out = out_;
    for (std::size_t row = begin_; row < begin_ + count_; ++row, out += features_.size())
      for (std::int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
        const auto feature = static_cast<std::uint32_t>(rows.columns[i]);
        const auto at = std::lower_bound(features_.begin(), features_.end(), feature);
        if (at != features_.end() && *at == feature)
          out[at - features_.begin()] = read(rows.values, static_cast<std::size_t>(i));
      }
  }

  void operator()(const ColumnRows& rows) const {
    for (std::size_t i = 0; i < features_.size(); ++i) {
      const Column& column = rows.columns[features_[i]];
      for (std::size_t r = 0; r < count_; ++r) {
        const double x = column_value(rows, column, features_[i], begin_ + r);
        out_[r * features_.size() + i] = std::abs(x) <= kTiny ? 0 : x;
      }
    }
  }

  void operator()(const CodedRows& rows) const {
    const std::size_t row_bytes = features_.size() * sizeof(double);
    const std::size_t codes = (rows.columns - row_bytes) * kCodeRows;
    for (std::size_t row = begin_; row < begin_ + count_; ++row)
      std::memcpy(out_ + (row - begin_) * features_.size(),
                  rows.codes + code_offset(row / kCodeRows * kCodeRows, rows.columns) + codes +
                      row % kCodeRows * row_bytes,
                  row_bytes);
  }

  void operator()(const DeviceRows&) const { FVM_CHECK(false); }  // the host has refused them

 private:
  /// Returns a value of a column that RowSource::read has checked; NaN if it is missing.
  static double column_value(const ColumnRows& rows, const Column& column, std::uint32_t feature,
                             std::size_t row) {
    constexpr double missing = std::numeric_limits<double>::quiet_NaN();
    if (host::present(column, row, 1) == 0) return missing;
    if (!is_text(column)) return host::number_at(column, row);
    const auto text = host::text_at(column, row);
    if (!text) return missing;
    const auto number = rows.texts->number_of(feature, *text);
    return number ? *number : missing;
  }

  std::size_t begin_, count_;
  std::span<const std::uint32_t> features_;
  double* out_;
};

}  // namespace

void RowSource::copy_features(std::size_t begin, std::size_t count, std::span<const std::uint32_t> features,
                              double* out) const {
  std::visit(FeatureCopy(begin, count, features, out), *rows_);
}

}  // namespace forestvm
