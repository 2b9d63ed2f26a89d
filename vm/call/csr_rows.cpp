// See csr_rows.hpp.
#include "vm/call/csr_rows.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "vm/call/row_value.hpp"

namespace forestvm {
namespace {

[[gnu::cold]] Error wrong(std::size_t row, const std::string& what) {
  return {ErrorCode::Usage, "row " + std::to_string(row), what};
}

Result<void> check_offsets(const CsrRows& rows, std::size_t first, std::size_t count) {
  for (std::size_t row = first; row < first + count; ++row) {
    const std::int64_t begin = rows.offsets[row], end = rows.offsets[row + 1];
    if (begin < 0) return wrong(row, "its first value is number " + std::to_string(begin) + ", below 0");
    if (end < begin)
      return wrong(row, "its values end at " + std::to_string(end) + ", before they begin at " +
                            std::to_string(begin));
    if (static_cast<std::uint64_t>(end) > rows.value_count)
      return wrong(row, "its values end at " + std::to_string(end) + ", there are " +
                            std::to_string(rows.value_count));
  }
  return {};
}

/// Returns the error for the first column that the model does not have. There must be one.
[[gnu::cold]] Error strange_column(const CsrRows& rows, std::size_t first, std::uint32_t num_features) {
  for (std::size_t row = first;; ++row)
    for (std::int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i)
      if (static_cast<std::uint32_t>(rows.columns[i]) >= num_features)
        return wrong(row, "its value " + std::to_string(i - rows.offsets[row]) + " is of column " +
                              std::to_string(rows.columns[i]) + "; the model has " +
                              std::to_string(num_features) + " features");
}

}  // namespace

namespace host {

Result<void> check_csr_rows(const CsrRows& rows, std::size_t first, std::size_t count,
                            std::uint32_t num_features) {
  FVM_TRY(check_offsets(rows, first, count));
  const std::int64_t begin = rows.offsets[first], end = rows.offsets[first + count];
  std::uint32_t highest = 0;  // no branch per value: a negative column becomes a large one
  for (std::int64_t i = begin; i < end; ++i)
    highest = std::max(highest, static_cast<std::uint32_t>(rows.columns[i]));
  if (begin == end || highest < num_features) return {};
  return strange_column(rows, first, num_features);
}

float absent_value(Absent absent) {
  return absent == Absent::Zero ? 0.0f : std::numeric_limits<float>::quiet_NaN();
}

void fill_csr_rows(const ValueRules& rules, const CsrRows& rows, std::size_t first, std::size_t count,
                   std::size_t width, float* out) {
  const float absent = absent_value(rows.absent);
  std::fill_n(out, count * width, absent);
  for (const ValueRules::Special& special : rules.specials())
    for (std::size_t r = 0; r < count; ++r)
      out[r * width + special.feature] = rules.round(special, static_cast<double>(absent));
  with_type(rows.type, [&](auto kind) {
    using Value = decltype(kind);
    for (std::size_t row = first; row < first + count; ++row, out += width)
      for (std::int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i)
        out[rows.columns[i]] = compared(rules, static_cast<std::uint32_t>(rows.columns[i]),
                                        value_at<Value>(rows.values, static_cast<std::size_t>(i)));
  });
}

}  // namespace host
}  // namespace forestvm
