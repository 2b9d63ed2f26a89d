// The codes of categories, against those that CatBoost 1.2.10 writes into model.json (features_info.cat_features_hash).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include <forestvm/internal/city_hash.hpp>

namespace forestvm::test::test_city_hash {
namespace {

TEST(CityHash, EqualsCatBoostsCodes) {
  EXPECT_EQ(category_code(""), 797982799);
  EXPECT_EQ(category_code("ß"), -1600431261);
  EXPECT_EQ(category_code("日本語"), 1379369661);
  EXPECT_EQ(category_code(" a"), -399213708);
}

/// Texts of 0 to 200 bytes reach every branch; the expected number combines CatBoost's 201 codes.
TEST(CityHash, EqualsCatBoostsCodesAtEveryLength) {
  std::uint32_t all = 0;
  for (std::uint32_t length = 0; length <= 200; ++length) {
    std::string text;
    for (std::uint32_t i = 0; i < length; ++i) text += static_cast<char>('a' + (i * 7 + length * 13) % 26);
    all = all * 31 + static_cast<std::uint32_t>(category_code(text));
  }
  EXPECT_EQ(all, 215909789u);
}

TEST(CityHash, HasSixtyFourBits) { EXPECT_EQ(city_hash64(""), 0x9ae16a3b2f90404fu); }

TEST(CityHash, TellsTextsOfOneNumberApart) {
  EXPECT_EQ(category_code("1"), 1121341681);
  EXPECT_EQ(category_code("-1"), 288298918);
  EXPECT_NE(category_code("01"), category_code("1"));
  EXPECT_NE(category_code("1.0"), category_code("1"));
}

}  // namespace
}  // namespace forestvm::test::test_city_hash
