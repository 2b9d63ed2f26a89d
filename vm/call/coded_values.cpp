// Encoded rows of programs whose leaves are linear functions: the values that the functions read stand behind the codes
// of each block, row by row. See forestvm/internal/row_source.hpp.
#include <algorithm>
#include <cstring>

#include <forestvm/internal/row_source.hpp>

namespace forestvm {
namespace {

/// The most values that are copied at once.
constexpr std::size_t kMaxValuesAtOnce = 512;

}  // namespace

void RowSource::write_coded(std::size_t begin, std::size_t count, const std::uint8_t* codes,
                            std::span<const std::uint32_t> features, std::uint8_t* out) const {
  const std::size_t block_bytes = reader_->coded_plans().code_columns() * kCodeRows;
  const std::size_t row_bytes = features.size() * sizeof(double);
  for (std::size_t row = 0; row < count; row += kCodeRows, codes += block_bytes) {
    std::copy_n(codes, block_bytes, out);  // `codes` is null if there are no columns of codes
    out += block_bytes;
    const std::size_t here = std::min<std::size_t>(kCodeRows, count - row);
    for (std::size_t i = 0; i < here; ++i)
      for (std::size_t first = 0; first < features.size(); first += kMaxValuesAtOnce) {
        double values[kMaxValuesAtOnce];  // aligned, which `out` may not be
        const std::size_t some = std::min(kMaxValuesAtOnce, features.size() - first);
        copy_features(begin + row + i, 1, features.subspan(first, some), values);
        std::memcpy(out + i * row_bytes + first * sizeof(double), values, some * sizeof(double));
      }
    std::memset(out + here * row_bytes, 0, (kCodeRows - here) * row_bytes);
    out += kCodeRows * row_bytes;
  }
}

}  // namespace forestvm
