// Sparse rows for tests, and the dense rows that they stand for, drawn together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <forestvm/backend.hpp>

namespace forestvm::test {

/// Owns the arrays to which CsrRows points.
struct SparseRows {
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> columns;
  std::vector<float> values;
  std::vector<float> dense;  ///< the equal dense rows, rows x features
  std::size_t features = 0;
  Absent absent = Absent::Missing;

  std::size_t count() const { return offsets.size() - 1; }
  CsrRows csr() const { return csr(0, count()); }
  CsrRows csr(std::size_t first, std::size_t rows) const;
  RowBlock block() const { return block(0, count()); }
  RowBlock block(std::size_t first, std::size_t rows) const;
};

/// Draws rows with the values of small_rows, some of them NaN, each present with a probability of `percent`.
/// The first two rows, and every tenth, are empty. A row's features come in any order; some have earlier
/// values, which do not count. The first row's values do not begin at offset 0.
SparseRows sparse_rows(std::size_t count, std::size_t features, unsigned percent,
                       Absent absent = Absent::Missing, std::uint32_t seed = 1);

}  // namespace forestvm::test
