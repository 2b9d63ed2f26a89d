// Outputs of trees for some rows (see tree_rows.hpp), for targets without vectors of whole lines.
#include "vm/host/tree_rows.hpp"

#include <algorithm>

#include "vm/host/large_results.hpp"
#include "vm/host/simd/stream.hpp"
#include "vm/host/simd/transpose.hpp"

namespace forestvm::host {

namespace {

/// The trees whose leaves of kTreeRows rows are written together, so that each row's output grows by a kilobyte.
constexpr std::size_t kTreesTogether = 256;

}  // namespace

void copy_tree_rows(const TreeRowsTask& task) {
  const auto [leaves, stride, trees, to, width, is_large, begins, ends] = task;
  // Each turn begins with the last trees of the one before: then every row's part ends with a whole line.
  float rows[kTreeRows][kTreeRows + kTreesTogether];
  for (std::size_t begin = 0; begin < trees; begin += kTreesTogether) {
    const std::size_t end = std::min(begin + kTreesTogether, trees),
                      first = begin == 0 ? 0 : begin - kTreeRows;
    for (std::size_t tree = first; tree < end; tree += kTreeRows) {
      const std::size_t t = std::min(tree, end - kTreeRows);
      for (std::size_t i = 0; i < kTreeRows; i += 4)
        for (std::size_t j = 0; j < kTreeRows; j += 4)
          transpose_4(leaves + (t + j) * stride + i, stride, &rows[i][t - first + j],
                      sizeof rows[0] / sizeof rows[0][0]);
    }
    for (std::size_t i = 0; i < kTreeRows; ++i) {
      float* const row = to + i * width;
      const bool whole = end == trees && ends;
      const std::size_t from = begin == 0 && begins ? 0 : first + before_line(row + first),
                        until = whole ? end : end - kTreeRows + before_line(row + end - kTreeRows);
      copy_result(&rows[i][from - first], (until - from) * sizeof *row, row + from, is_large);
    }
  }
}

}  // namespace forestvm::host
