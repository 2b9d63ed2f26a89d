// The costs by which rules decide whether calls of few rows walk values or rank codes.
#include "scheduler/choose/few_rows_cost.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace forestvm::test::test_few_rows_cost {
namespace {

using scheduler::FewRowsCost;

TEST(FewRowsCost, EncodingIsSharedByRows) {
  const FewRowsCost cost{100, 1000};
  EXPECT_GT(cost.encode(1), 4 * cost.encode(8));
  EXPECT_GT(cost.walk_values(), cost.walk_codes());
}

TEST(FewRowsCost, ValuesAreWalkedUntilEncodingPays) {
  EXPECT_EQ((FewRowsCost{10, 1000}.rows_by_values()), 0u);           // encoding pays for one row
  EXPECT_EQ((FewRowsCost{1000, 100}.rows_by_values()), UINT32_MAX);  // encoding never pays
  const FewRowsCost some{100, 700};
  const std::uint32_t rows = some.rows_by_values();
  EXPECT_GT(rows, 1u);
  EXPECT_LT(rows, 100u);
  EXPECT_GT(some.encode(rows) + some.walk_codes(), some.walk_values());
  EXPECT_LE(some.encode(rows + 1) + some.walk_codes(), some.walk_values());
  EXPECT_EQ((FewRowsCost{0, 0}.rows_by_values()), 0u);
}

TEST(FewRowsCost, SaysWhatItComparesWith) {
  EXPECT_EQ(
      (FewRowsCost{128, 700}.why_values(1)),
      "walks values, because at 1 row encoding 128 features takes about 1.41 us a row and walking codes 0.21, walking "
      "values 0.47");
  EXPECT_EQ((FewRowsCost{10, 1000}.why_codes(16)).substr(0, 53),
            "walks codes, because at 16 rows encoding 10 features ");
}

}  // namespace
}  // namespace forestvm::test::test_few_rows_cost
