// The table of thresholds from which rank codes are computed.
#include "scheduler/rank_table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "support/nightly.hpp"

namespace forestvm::scheduler::test_rank_table {
namespace {

/// Programs with equal thresholds have the same encoder, bit for bit, whichever zero the model file has.
TEST(RankTable, HasOneZero) {
  RankTable ranks;
  for (const float threshold : {-0.0f, 1.0f, 0.0f, -1.0f}) {
    ranks.add({threshold, 7});
    ranks.add({threshold, 7 | kMissingLeft});
  }
  ranks.add({-0.0f, 8});
  ASSERT_TRUE(ranks.seal().ok());
  EXPECT_EQ(ranks.ranks(), (std::vector<float>{-1, 0, 1, 0}));
  for (const float rank : ranks.ranks()) EXPECT_EQ(std::signbit(rank), rank < 0);
  for (const float zero : {-0.0f, 0.0f}) {
    EXPECT_EQ(ranks.find({zero, 7}).code, 1);
    EXPECT_EQ(ranks.find({zero, 8}).code, 0);
  }
}

TEST(RankTable, HasNoMoreColumnsThanBlocksOfCodesHaveRoomFor) {
  if (!support::nightly())
    GTEST_SKIP() << "not by day, because tables of four million columns take a gigabyte: ./dev nightly";
  std::vector<CategorySet> sets(kMaxColumns / 2);  // a column for each set and each side of missing values
  for (std::uint32_t i = 0; i < sets.size(); ++i) sets[i].codes = {i};
  for (const bool one_more : {false, true}) {
    RankTable ranks;
    for (const CategorySet& set : sets)
      for (const std::uint32_t side : {0u, kMissingLeft}) ranks.add({0, 7 | side, &set});
    if (one_more) ranks.add({0.5f, 8});
    const Result<void> sealed = ranks.seal();
    if (one_more)
      EXPECT_EQ(sealed.ok() ? "" : sealed.error().message,
                "its splits need 4194305 columns of codes, at most 4194304");
    else
      EXPECT_TRUE(sealed.ok());
  }
}

}  // namespace
}  // namespace forestvm::scheduler::test_rank_table
