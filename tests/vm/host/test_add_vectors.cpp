// Sums of leaves' vectors: every target adds tree after tree to each output of each row, and touches nothing else.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "vm/host/targets/target.hpp"

namespace forestvm::test::test_add_vectors {
namespace {

/// Returns numbers whose sum depends on the order in which they are added.
template <class Score>
std::vector<Score> random_numbers(std::size_t count, std::mt19937& random) {
  std::vector<Score> numbers(count);
  for (Score& number : numbers) number = static_cast<Score>(random()) / 7 - Score{3e8};
  return numbers;
}

struct Sizes {
  std::uint32_t width, trees, rows;
};

template <class Score>
void expect_sums(const host::Target& target, const Sizes& sizes, std::mt19937& random) {
  constexpr std::uint32_t kVectors = 37;
  const auto [width, trees, rows] = sizes;
  const std::size_t stride = rows + random() % 3;
  const std::vector<Score> vectors = random_numbers<Score>(std::size_t{kVectors} * width, random);
  std::vector<Score> leaves(stride * trees, std::numeric_limits<Score>::quiet_NaN());
  // The numbers before and after the sums must stay, and the sums are aligned for single numbers only.
  std::vector<Score> sums = random_numbers<Score>(std::size_t{rows} * width + 2, random), expected = sums;
  for (std::uint32_t t = 0; t < trees; ++t)
    for (std::uint32_t i = 0; i < rows; ++i) {
      const std::size_t leaf = random() % (kVectors + 4);  // some of them damaged
      constexpr Score kDamaged[] = {-1, kVectors, std::numeric_limits<Score>::quiet_NaN(), Score{1e30f}};
      leaves[t * stride + i] = leaf < kVectors ? static_cast<Score>(leaf) : kDamaged[leaf - kVectors];
      const std::size_t vector = leaf < kVectors ? leaf : 0;
      for (std::uint32_t k = 0; k < width; ++k)
        expected[1 + std::size_t{i} * width + k] += vectors[vector * width + k];
    }
  target.add_vectors({{vectors.data(), kVectors, width},
                      sizeof(Score) == sizeof(double),
                      leaves.data(),
                      stride,
                      trees,
                      rows,
                      sums.data() + 1});
  ASSERT_EQ(sums, expected) << target.name << ": " << width << " outputs, " << trees << " trees, " << rows
                            << " rows";
}

class AddVectors : public testing::TestWithParam<std::uint32_t> {};

TEST_P(AddVectors, AddsTreeAfterTree) {
  std::mt19937 random(GetParam());
  for (const host::Target& target : host::targets()) {
    if (!target.runs_here()) continue;
    for (const std::uint32_t rows : {1u, 2u, 7u, 16u, 17u, 31u, 64u})
      for (const std::uint32_t trees : {0u, 1u, 5u, 8u, 21u, 600u}) {
        expect_sums<float>(target, {GetParam(), trees, rows}, random);
        expect_sums<double>(target, {GetParam(), trees, rows}, random);
      }
  }
}

/// The widths lie below, at and above the lanes of one vector and of several vectors of every target.
INSTANTIATE_TEST_SUITE_P(Outputs, AddVectors,
                         testing::Values(1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, 31, 32, 33, 47, 64, 65, 80,
                                         100));

}  // namespace
}  // namespace forestvm::test::test_add_vectors
