// Counts of shared leaves and their weights, against counting one leaf after the other, on every CPU target.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/proximity.hpp>

#include "support/targets_here.hpp"

namespace forestvm::test_proximity {
namespace {

/// Leaf numbers of rows, each of `trees` trees with its own number of leaves.
struct Leaves {
  std::size_t trees;
  std::vector<std::int32_t> numbers{};

  std::size_t rows() const { return numbers.size() / trees; }
  std::int32_t at(std::size_t row, std::size_t tree) const { return numbers[row * trees + tree]; }
};

/// Draws leaves. Some trees need codes of two bytes, and one of four, if there are enough rows.
Leaves drawn(std::size_t rows, std::size_t trees, unsigned seed) {
  std::mt19937 random(seed);
  Leaves leaves{trees};
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t t = 0; t < trees; ++t) {
      const std::uint32_t most = t % 7 == 3 ? 1000 : t % 7 == 6 ? 1'000'000 : 10;
      leaves.numbers.push_back(static_cast<std::int32_t>(random() % most));
    }
  return leaves;
}

std::vector<std::int32_t> slow_counts(const Leaves& rows, const Leaves& others) {
  std::vector<std::int32_t> all;
  for (std::size_t r = 0; r < rows.rows(); ++r)
    for (std::size_t o = 0; o < others.rows(); ++o) {
      std::int32_t count = 0;
      for (std::size_t t = 0; t < rows.trees; ++t) count += rows.at(r, t) == others.at(o, t) ? 1 : 0;
      all.push_back(count);
    }
  return all;
}

/// Adds up the weights tree by tree. The order of the library differs, so the last bits may.
std::vector<double> slow_weights(const Leaves& rows, const Leaves& others) {
  std::vector<double> all;
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    std::vector<double> mine(others.rows());
    for (std::size_t t = 0; t < rows.trees; ++t) {
      std::vector<std::size_t> sharers;
      for (std::size_t o = 0; o < others.rows(); ++o)
        if (rows.at(r, t) == others.at(o, t)) sharers.push_back(o);
      for (const std::size_t o : sharers) mine[o] += 1.0 / static_cast<double>(sharers.size());
    }
    for (const double sum : mine) all.push_back(sum / static_cast<double>(rows.trees));
  }
  return all;
}

KeptLeaves kept_of(const Leaves& leaves, const std::string& target, std::size_t at_once) {
  auto kept = KeptLeaves::make(leaves.trees, target);
  EXPECT_TRUE(kept.ok());
  const std::span<const std::int32_t> all(leaves.numbers);
  for (std::size_t i = 0; i < all.size(); i += at_once * leaves.trees)
    EXPECT_TRUE(kept->add(all.subspan(i, std::min(at_once * leaves.trees, all.size() - i))).ok());
  EXPECT_EQ(kept->rows(), leaves.rows());
  return std::move(*kept);
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-15) << i;
}

void expect_counts(const KeptLeaves& kept, const Leaves& rows, const Leaves& others) {
  std::vector<std::int32_t> counts(rows.rows() * others.rows(), -1);
  ASSERT_TRUE(kept.count(rows.numbers, counts).ok());
  EXPECT_EQ(counts, slow_counts(rows, others));
}

TEST(Proximity, CountsSharedLeaves) {
  for (const std::string& target : support::targets_here())
    for (const std::size_t trees : {1U, 9U, 300U})
      for (const std::size_t kept_rows : {1U, 256U, 700U}) {
        const Leaves rows = drawn(21, trees, 1), others = drawn(kept_rows, trees, 2);
        const KeptLeaves kept = kept_of(others, target, 100);
        SCOPED_TRACE(target + ' ' + std::to_string(trees) + ' ' + std::to_string(kept_rows));
        expect_counts(kept, rows, others);
        std::vector<double> weights(rows.rows() * others.rows(), -1);
        ASSERT_TRUE(kept.weigh(rows.numbers, weights).ok());
        expect_near(weights, slow_weights(rows, others));
      }
}

/// Many rows are compared by sets of the kept rows in each leaf: with every number of trees up to some whole blocks,
/// tiles that are full and not, and counts of one and of two bytes.
TEST(Proximity, CountsLeavesOfManyRows) {
  for (const std::string& target : support::targets_here())
    for (const std::size_t trees : {1U, 15U, 16U, 17U, 31U, 32U, 33U, 300U})
      for (const std::size_t kept_rows : {1U, 511U, 513U}) {
        const Leaves rows = drawn(150, trees, 1), others = drawn(kept_rows, trees, 2);
        const KeptLeaves kept = kept_of(others, target, 100);
        SCOPED_TRACE(target + ' ' + std::to_string(trees) + ' ' + std::to_string(kept_rows));
        expect_counts(kept, rows, others);
      }
}

TEST(Proximity, CountsUpToAllTrees) {
  for (const std::string& target : support::targets_here())
    for (const std::size_t trees : {255U, 256U, 65'536U, 70'001U}) {
      const Leaves rows{trees, std::vector<std::int32_t>(140 * trees, 7)};
      const KeptLeaves kept = kept_of({trees, std::vector<std::int32_t>(3 * trees, 7)}, target, 3);
      std::vector<std::int32_t> counts(140 * 3);
      ASSERT_TRUE(kept.count(rows.numbers, counts).ok());
      EXPECT_EQ(counts, std::vector<std::int32_t>(140 * 3, static_cast<std::int32_t>(trees))) << target;
    }
}

/// The sets of these trees' leaves are too many for a cache, so that counts of some trees are kept while those of the
/// next trees are made.
TEST(Proximity, CountsTreesInParts) {
  Leaves others{100}, rows{100};
  for (std::int32_t i = 0; i < 2000; ++i)
    for (std::int32_t t = 0; t < 100; ++t) others.numbers.push_back(t % 3 == 0 ? i % 10 : i + t);
  for (std::int32_t i = 0; i < 150; ++i)
    for (std::int32_t t = 0; t < 100; ++t) rows.numbers.push_back(t % 3 == 0 ? i % 11 : i * 14 + t);
  for (const std::string& target : support::targets_here()) {
    const KeptLeaves kept = kept_of(others, target, 2000);
    std::vector<std::int32_t> counts(rows.rows() * others.rows());
    ASSERT_TRUE(kept.count(rows.numbers, counts).ok());
    EXPECT_EQ(counts, slow_counts(rows, others)) << target;
  }
}

/// More rows than are compared at once, of which the second part has one row less, with trees in parts.
TEST(Proximity, CountsManyRowsOfTreesInParts) {
  Leaves others{100}, rows{100};
  for (std::int32_t i = 0; i < 20'000; ++i) others.numbers.push_back(i / 100);
  for (std::int32_t i = 0; i < 4'103; ++i)
    for (std::int32_t t = 0; t < 100; ++t) rows.numbers.push_back((i + t % 7) % 211);
  const std::vector<std::int32_t> expected = slow_counts(rows, others);
  for (const std::string& target : support::targets_here()) {
    std::vector<std::int32_t> counts(expected.size());
    ASSERT_TRUE(kept_of(others, target, 200).count(rows.numbers, counts).ok());
    EXPECT_TRUE(counts == expected) << target;
  }
}

/// One of these trees has more leaves than trees that are counted together may have.
TEST(Proximity, CountsTreesOfManyLeaves) {
  Leaves others{3}, rows{3};
  for (std::int32_t i = 0; i < 20'000; ++i) others.numbers.insert(others.numbers.end(), {i % 3, i, i % 5});
  for (std::int32_t i = 0; i < 150; ++i) rows.numbers.insert(rows.numbers.end(), {i % 4, i * 140, i % 7});
  for (const std::string& target : support::targets_here()) {
    const KeptLeaves kept = kept_of(others, target, 20'000);
    std::vector<std::int32_t> counts(rows.rows() * others.rows());
    ASSERT_TRUE(kept.count(rows.numbers, counts).ok());
    EXPECT_EQ(counts, slow_counts(rows, others)) << target;
  }
}

/// Large results are written past the caches, whatever their alignment. More than 4,096 rows are compared in parts.
TEST(Proximity, WritesLargeResults) {
  const Leaves rows = drawn(4'099, 2, 4), others = drawn(515, 2, 5);
  const std::vector<std::int32_t> expected = slow_counts(rows, others);
  for (const std::string& target : support::targets_here()) {
    const KeptLeaves kept = kept_of(others, target, 515);
    for (std::size_t offset = 0; offset < 16; offset += 5) {
      std::vector<std::int32_t> counts(offset, -1);
      counts.insert(counts.end(), expected.size(), 0);
      counts.push_back(-1);
      ASSERT_TRUE(kept.count(rows.numbers, std::span(counts).subspan(offset)).ok());
      std::vector<std::int32_t> all(offset, -1);
      all.insert(all.end(), expected.begin(), expected.end());
      all.push_back(-1);
      EXPECT_TRUE(counts == all) << target << ' ' << offset;
    }
  }
}

TEST(Proximity, CountsAmongKeptRows) {
  const Leaves leaves = drawn(600, 8, 3);
  const KeptLeaves kept = kept_of(leaves, "auto", 7);
  std::vector<std::int32_t> counts(600 * 600);
  std::vector<double> weights(counts.size());
  for (std::size_t first = 0; first < 600; first += 200) {
    ASSERT_TRUE(kept.count_kept(first, 200, std::span(counts).subspan(first * 600)).ok());
    ASSERT_TRUE(kept.weigh_kept(first, 200, std::span(weights).subspan(first * 600)).ok());
  }
  EXPECT_EQ(counts, slow_counts(leaves, leaves));
  expect_near(weights, slow_weights(leaves, leaves));
}

/// Compares some kept rows with all of them, and expects the bits that comparing them as rows of a call gives.
void expect_as_rows_of_a_call(const KeptLeaves& kept, const Leaves& leaves, std::size_t first,
                              std::size_t count) {
  const auto rows = std::span(leaves.numbers).subspan(first * leaves.trees, count * leaves.trees);
  std::vector<std::int32_t> counts(count * kept.rows(), -1), expected(counts.size());
  ASSERT_TRUE(kept.count_kept(first, count, counts).ok());
  ASSERT_TRUE(kept.count(rows, expected).ok());
  EXPECT_TRUE(counts == expected) << first << ' ' << count;
  std::vector<double> weights(counts.size(), -1), expected_weights(counts.size());
  ASSERT_TRUE(kept.weigh_kept(first, count, weights).ok());
  ASSERT_TRUE(kept.weigh(rows, expected_weights).ok());
  EXPECT_TRUE(weights == expected_weights) << first << ' ' << count;
}

/// Pairs of kept rows are compared once: with one tile, a few rows, parts of many rows and a rest in the last tile.
TEST(Proximity, ComparesPairsOfKeptRowsOnce) {
  for (const std::string& target : support::targets_here())
    for (const std::size_t rows : {1U, 130U, 512U, 513U, 527U, 528U, 529U, 768U, 1024U, 1301U}) {
      const Leaves leaves = drawn(rows, 17, 6);
      SCOPED_TRACE(target + ' ' + std::to_string(rows));
      const KeptLeaves kept = kept_of(leaves, target, 300);
      std::vector<std::int32_t> counts(rows * rows, -1);
      ASSERT_TRUE(kept.count_kept(0, rows, counts).ok());
      EXPECT_TRUE(counts == slow_counts(leaves, leaves));
      expect_as_rows_of_a_call(kept, leaves, 0, rows);
    }
}

/// Some of the kept rows: whole tiles, the last tiles, and rows that are no whole tiles.
TEST(Proximity, ComparesSomeKeptRows) {
  const Leaves leaves = drawn(1700, 5, 7);
  for (const std::string& target : support::targets_here()) {
    const KeptLeaves kept = kept_of(leaves, target, 1700);
    for (const std::size_t first : {0U, 512U, 1024U, 100U, 1536U, 1690U})
      for (const std::size_t end : {512U, 1536U, 1600U, 1700U})
        if (first < end) expect_as_rows_of_a_call(kept, leaves, first, end - first);
  }
}

/// The first tree has few leaves in the first tile and many in the next, so that tiles add up trees in another order.
TEST(Proximity, ComparesTilesOfSeveralWidths) {
  Leaves leaves{5};
  for (std::int32_t i = 0; i < 1'200; ++i)
    leaves.numbers.insert(leaves.numbers.end(), {i / 3, i % 7, i % 11, i % 13, i % 3});
  for (const std::string& target : support::targets_here())
    expect_as_rows_of_a_call(kept_of(leaves, target, 1'200), leaves, 0, 1'200);
}

/// More rows than are compared at once, trees in parts, and results that are written past the caches.
TEST(Proximity, ComparesManyKeptRowsOnce) {
  Leaves leaves{100};
  for (std::int32_t i = 0; i < 4'103; ++i)
    for (std::int32_t t = 0; t < 100; ++t) leaves.numbers.push_back((i + t % 7) % (t % 10 == 0 ? 200 : 300));
  for (const std::string& target : support::targets_here()) {
    const KeptLeaves kept = kept_of(leaves, target, 500);
    std::vector<std::int32_t> counts(leaves.rows() * leaves.rows(), -1), expected(counts.size());
    ASSERT_TRUE(kept.count_kept(0, leaves.rows(), counts).ok());
    ASSERT_TRUE(kept.count(leaves.numbers, expected).ok());
    EXPECT_TRUE(counts == expected) << target;
  }
}

/// Pairs of two tiles' rows are compared once by their codes where a tree has more leaves than sets have numbers.
TEST(Proximity, ComparesPairsOfKeptRowsOnceByCodes) {
  constexpr std::size_t kRows = 66'058, kFirst = 65'536, kCompared = kRows - kFirst;
  Leaves leaves{2};
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(kRows); ++i)
    leaves.numbers.insert(leaves.numbers.end(), {i, i % 5});
  const KeptLeaves kept = kept_of(leaves, "auto", kRows);
  std::vector<std::int32_t> counts(kCompared * kRows, -1);
  ASSERT_TRUE(kept.count_kept(kFirst, kCompared, counts).ok());
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < kCompared; ++r)
    for (std::size_t other = 0; other < kRows; ++other) {
      const std::size_t row = kFirst + r;
      const std::int32_t expected = (row == other ? 1 : 0) + (row % 5 == other % 5 ? 1 : 0);
      if (counts[r * kRows + other] != expected) ++wrong;
    }
  EXPECT_EQ(wrong, 0U);
}

/// Each thread compares some rows, and writes its part of the results.
TEST(Proximity, ComparesKeptRowsInThreads) {
  const Leaves leaves = drawn(2'000, 20, 8);
  const KeptLeaves kept = kept_of(leaves, "auto", 2'000);
  std::vector<std::int32_t> counts(2'000 * 2'000, -1), expected(counts.size());
  const auto compare = [&](std::size_t first, std::size_t rows) {
    EXPECT_TRUE(kept.count_kept(first, rows, std::span(counts).subspan(first * 2'000)).ok());
  };
  std::thread other(compare, 0, 1'024);
  compare(1'024, 976);
  other.join();
  ASSERT_TRUE(kept.count(leaves.numbers, expected).ok());
  EXPECT_TRUE(counts == expected);
}

/// Calls one after the other compare whole tiles if they may.
TEST(Proximity, SaysHowManyRowsToCompareTogether) {
  const KeptLeaves kept = kept_of(drawn(1'100, 1, 9), "auto", 1'100);
  EXPECT_EQ(kept.rows_together(2'000), 1'100U);
  EXPECT_EQ(kept.rows_together(1'100), 1'100U);
  EXPECT_EQ(kept.rows_together(1'099), 1'024U);
  EXPECT_EQ(kept.rows_together(512), 512U);
  EXPECT_EQ(kept.rows_together(511), 511U);
  EXPECT_EQ(kept.rows_together(0), 1U);
}

TEST(Proximity, TakesCodesOfFourBytes) {
  Leaves leaves{2};
  for (std::int32_t i = 0; i < 70'000; ++i) leaves.numbers.insert(leaves.numbers.end(), {i, i % 5});
  const KeptLeaves kept = kept_of(leaves, "auto", 70'000);
  Leaves rows{2, {69'999, 4, 255, 0, 65'535, 0, 70'000, 5}};
  for (std::int32_t i = 0; i < 140; ++i) rows.numbers.insert(rows.numbers.end(), {i * 501, i % 7});
  std::vector<std::int32_t> counts(rows.rows() * leaves.rows());
  ASSERT_TRUE(kept.count(rows.numbers, counts).ok());
  EXPECT_EQ(counts, slow_counts(rows, leaves));
}

/// Memory goes with the leaves that rows reach. A table by leaf number would take 8 GiB for each of these trees.
TEST(Proximity, TakesLargeLeafNumbers) {
  Leaves leaves{64};
  for (std::int32_t row = 0; row < 50; ++row)
    for (std::int32_t tree = 0; tree < 64; ++tree)
      leaves.numbers.push_back(INT32_MAX - (row * (tree + 1) % 17 << 20));
  const KeptLeaves kept = kept_of(leaves, "auto", 50);
  std::vector<std::int32_t> counts(50 * 50);
  ASSERT_TRUE(kept.count(leaves.numbers, counts).ok());
  EXPECT_EQ(counts, slow_counts(leaves, leaves));
}

TEST(Proximity, FindsTheNearest) {
  const std::vector<std::int32_t> scores{3, 9, 3, 0, 9, 4};
  const auto rows_of = [&](std::size_t most, std::optional<std::size_t> skipped) {
    std::vector<std::size_t> rows;
    for (const auto& neighbour : nearest(std::span<const std::int32_t>(scores), most, skipped)) {
      EXPECT_EQ(neighbour.score, scores[neighbour.row]);
      rows.push_back(neighbour.row);
    }
    return rows;
  };
  using Rows = std::vector<std::size_t>;
  EXPECT_EQ(rows_of(4, {}), (Rows{1, 4, 5, 0}));
  EXPECT_EQ(rows_of(4, 1), (Rows{4, 5, 0, 2}));
  EXPECT_EQ(rows_of(9, {}), (Rows{1, 4, 5, 0, 2, 3}));
  EXPECT_EQ(rows_of(0, {}), Rows{});
}

TEST(Proximity, RefusesWhatMakesNoSense) {
  const auto error = [](const Result<void>& done) { return done ? "" : done.error().message; };
  EXPECT_FALSE(KeptLeaves::make(0).ok());
  EXPECT_FALSE(KeptLeaves::make(1, "abacus").ok());
  auto kept = KeptLeaves::make(2);
  EXPECT_EQ(error(kept->add(std::vector<std::int32_t>{1, 2, 3})), "3 leaf numbers are no rows of 2 trees");
  EXPECT_EQ(error(kept->add(std::vector<std::int32_t>{1, -2})),
            "row 0, tree 1: leaf number -2, expected 0 or more");
  for (const std::size_t at : {1U, 63U, 4095U, 4096U, 5001U}) {
    std::vector<std::int32_t> leaves(5002);
    leaves[at] = leaves.back() = -3;
    EXPECT_EQ(error(kept->add(leaves)), "row " + std::to_string(at / 2) + ", tree " + std::to_string(at % 2) +
                                            ": leaf number -3, expected 0 or more");
  }
  EXPECT_EQ(kept->rows(), 0U);
  ASSERT_TRUE(kept->add(std::vector<std::int32_t>{1, 2, 1, 3}).ok());
  std::vector<std::int32_t> counts(3);
  EXPECT_EQ(error(kept->count(std::vector<std::int32_t>{1, 2, 3}, counts)),
            "3 leaf numbers are no rows of 2 trees");
  EXPECT_EQ(error(kept->count(std::vector<std::int32_t>{1, 2, -1, 4}, counts)),
            "room for 3 numbers, expected 2 x 2");
  EXPECT_EQ(error(kept->count_kept(1, 2, counts)), "rows 1 to 3 of 2 kept ones");
}

}  // namespace
}  // namespace forestvm::test_proximity
