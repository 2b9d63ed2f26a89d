// See csr_rows.hpp.
#include "vm/call/csr_rows.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "vm/call/row_value.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm {
namespace {

[[gnu::cold]] Failure wrong(std::size_t row, std::string_view what) {
  return fail(ErrorCode::Usage, formatted("row {}", row), what);
}

Result<void> check_offsets(const CsrRows& rows, std::size_t first, std::size_t count) {
  for (std::size_t row = first; row < first + count; ++row) {
    const std::int64_t begin = rows.offsets[row], end = rows.offsets[row + 1];
    if (begin < 0) return wrong(row, formatted("its first value is number {}, below 0", begin));
    if (end < begin)
      return wrong(row, formatted("its values end at {}, before they begin at {}", end, begin));
    if (static_cast<std::uint64_t>(end) > rows.value_count)
      return wrong(row, formatted("its values end at {}, there are {}", end, rows.value_count));
  }
  return {};
}

/// Returns the error for the first column that the model does not have. There must be one.
[[gnu::cold]] Failure strange_column(const CsrRows& rows, std::size_t first, std::uint32_t num_features) {
  for (std::size_t row = first;; ++row)
    for (std::int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i)
      if (static_cast<std::uint32_t>(rows.columns[i]) >= num_features)
        return wrong(row, formatted("its value {} is of column {}; the model has {} features",
                                    i - rows.offsets[row], rows.columns[i], num_features));
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
