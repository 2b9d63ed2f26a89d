// Outputs of trees, written row by row in whole lines by the targets that can, against one number after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "vm/host/targets/target.hpp"

namespace forestvm::test_tree_rows {
namespace {

using host::kTreeRows;

/// Writes the outputs of `trees` trees in tasks of `step` trees and the last ones of the task before. Rows are `width`
/// numbers apart, and the first lies `bytes` bytes behind a cache line.
void expect_rows(const host::Target& target, std::size_t trees, std::size_t step, std::size_t width,
                 std::size_t bytes, bool is_large) {
  constexpr std::size_t kStride = 20, kLine = 64;
  std::vector<float> leaves(trees * kStride);
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i] = static_cast<float>(i + 1);
  struct alignas(kLine) Line {
    std::byte bytes[kLine];
  };
  std::vector<Line> lines((bytes + kTreeRows * width * sizeof(float)) / kLine + 2);
  std::byte* const to = lines[0].bytes + bytes;
  for (std::size_t begin = 0; begin < trees; begin += step) {
    const std::size_t first = begin == 0 ? 0 : begin - kTreeRows, end = std::min(trees, begin + step);
    target.store_trees({leaves.data() + first * kStride, kStride, end - first,
                        reinterpret_cast<float*>(to) + first, width, is_large, begin == 0, end == trees});
  }
  std::vector<std::byte> expected(lines.size() * kLine);
  for (std::size_t row = 0; row < kTreeRows; ++row)
    for (std::size_t tree = 0; tree < trees; ++tree)
      std::memcpy(expected.data() + bytes + (row * width + tree) * sizeof(float),
                  &leaves[tree * kStride + row], sizeof(float));
  EXPECT_EQ(std::memcmp(lines[0].bytes, expected.data(), expected.size()), 0)
      << target.name << ": " << trees << " trees, " << step << " at a time, " << width << " wide, from byte "
      << bytes;
}

TEST(TreeRows, HaveEachTreesOutputs) {
  for (const host::Target& target : host::targets()) {
    if (!target.runs_here()) continue;
    for (const std::size_t trees : {16U, 17U, 31U, 32U, 47U, 256U, 300U, 512U})
      for (const std::size_t more : {0U, 1U, 15U, 16U})
        for (std::size_t offset = 0; offset < 16; ++offset)
          expect_rows(target, trees, trees, trees + more, offset * sizeof(float), offset % 2 == 0);
  }
}

/// Tasks end and begin in the midst of lines, which the later task of the two writes.
TEST(TreeRows, HaveTheOutputsOfTreesThatComeInSeveralTasks) {
  for (const host::Target& target : host::targets()) {
    if (!target.runs_here()) continue;
    for (const std::size_t trees : {33U, 48U, 65U, 600U})
      for (const std::size_t step : {32U, 288U})
        for (std::size_t offset = 0; offset < 16; ++offset)
          expect_rows(target, trees, step, trees + offset % 3, offset * sizeof(float), offset % 2 == 0);
  }
}

/// Callers may give an array at any address.
TEST(TreeRows, HaveEachTreesOutputsWhereNumbersLieInTwoLines) {
  for (const host::Target& target : host::targets())
    if (target.runs_here())
      for (const std::size_t bytes : {1U, 30U, 61U, 63U}) expect_rows(target, 80, 32, 81, bytes, true);
}

}  // namespace
}  // namespace forestvm::test_tree_rows
