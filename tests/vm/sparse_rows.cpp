#include "sparse_rows.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "small_program.hpp"

namespace forestvm::test {
namespace {

constexpr std::size_t kBefore = 5;  ///< number of values in front that belong to no row

}  // namespace

CsrRows SparseRows::csr(std::size_t first, std::size_t rows) const {
  return {rows, offsets.data() + first, columns.data(), values.data(), values.size(), absent};
}

RowBlock SparseRows::block(std::size_t first, std::size_t rows) const {
  return {dense.data() + first * features, rows, features};
}

SparseRows sparse_rows(std::size_t count, std::size_t features, unsigned percent, Absent absent,
                       std::uint32_t seed) {
  std::mt19937 random(seed);
  const std::vector<float> drawn = small_rows(count, features, seed);
  SparseRows rows;
  rows.features = features;
  rows.absent = absent;
  rows.dense.assign(count * features,
                    absent == Absent::Zero ? 0.0f : std::numeric_limits<float>::quiet_NaN());
  rows.columns.assign(kBefore, -1);
  rows.values.assign(kBefore, 1.0f);
  rows.offsets.push_back(kBefore);
  std::vector<std::int32_t> present;
  for (std::size_t row = 0; row < count; ++row) {
    present.clear();
    for (std::size_t f = 0; f < features && row > 1 && row % 10 != 9; ++f)
      if (random() % 100 < percent)
        present.insert(present.end(), 1 + random() % 8 / 7, static_cast<std::int32_t>(f));
    std::shuffle(present.begin(), present.end(), random);
    for (const std::int32_t feature : present) {
      const std::size_t at = row * features + static_cast<std::size_t>(feature);
      rows.columns.push_back(feature);
      rows.values.push_back(drawn[random() % 4 == 0 ? random() % drawn.size() : at]);
      rows.dense[at] = rows.values.back();
    }
    rows.offsets.push_back(static_cast<std::int64_t>(rows.values.size()));
  }
  return rows;
}

}  // namespace forestvm::test
