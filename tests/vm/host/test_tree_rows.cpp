// Outputs of trees, written row by row in whole lines by the targets that can, against one number after the other.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "vm/host/targets/target.hpp"

namespace forestvm::test_tree_rows {
namespace {

using host::kTreeRows;

/// Rows are `width` numbers apart, and the first lies `offset` numbers behind a cache line.
void expect_rows(const host::Target& target, std::size_t trees, std::size_t width, std::size_t offset,
                 bool is_large) {
  constexpr std::size_t kStride = 20, kLine = 16;
  std::vector<float> leaves(trees * kStride);
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i] = static_cast<float>(i + 1);
  struct alignas(64) Line {
    float numbers[kLine];
  };
  std::vector<Line> lines((offset + kTreeRows * width) / kLine + 2);
  float* const to = lines[0].numbers + offset;
  const bool done = target.store_trees({leaves.data(), kStride, trees, to, width, is_large});
  EXPECT_EQ(done, target.name == "avx512") << target.name;
  if (!done) return;
  std::vector<float> expected(lines.size() * kLine);
  for (std::size_t row = 0; row < kTreeRows; ++row)
    for (std::size_t tree = 0; tree < trees; ++tree)
      expected[offset + row * width + tree] = leaves[tree * kStride + row];
  const float* const all = lines[0].numbers;
  EXPECT_EQ(std::vector<float>(all, all + expected.size()), expected)
      << target.name << ": " << trees << " trees, " << width << " wide, from " << offset;
}

TEST(TreeRows, HaveEachTreesOutputs) {
  for (const host::Target& target : host::targets()) {
    if (!target.runs_here()) continue;
    for (const std::size_t trees : {16U, 17U, 31U, 32U, 47U, 512U})
      for (const std::size_t more : {0U, 1U, 15U, 16U})
        for (std::size_t offset = 0; offset < 16; ++offset)
          expect_rows(target, trees, trees + more, offset, offset % 2 == 0);
  }
}

/// Callers may give an array at any address.
TEST(TreeRows, AreLeftAloneWhereNumbersLieInTwoLines) {
  const std::vector<float> leaves(kTreeRows * kTreeRows);
  std::vector<float> out(kTreeRows * kTreeRows + 1, 1.0F);
  auto* const to = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(out.data()) + 1);
  for (const host::Target& target : host::targets()) {
    if (!target.runs_here()) continue;
    EXPECT_FALSE(target.store_trees({leaves.data(), kTreeRows, kTreeRows, to, kTreeRows, true}));
  }
  EXPECT_EQ(out, std::vector<float>(out.size(), 1.0F));
}

}  // namespace
}  // namespace forestvm::test_tree_rows
