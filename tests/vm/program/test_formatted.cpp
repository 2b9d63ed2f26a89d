// Texts with numbers and names for each {}.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::test_formatted {
namespace {

TEST(Formatted, WritesNumbersOfEveryType) {
  EXPECT_EQ(formatted("{} {} {}", std::int8_t{-5}, std::uint8_t{200}, std::int16_t{-300}), "-5 200 -300");
  EXPECT_EQ(
      formatted("{}/{}", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::uint64_t>::max()),
      "-9223372036854775808/18446744073709551615");
  EXPECT_EQ(formatted("{}{}", 1, 2u), "12");
}

TEST(Formatted, WritesTextsOfEveryType) {
  const std::string name = "row";
  const std::string_view part = std::string_view("columns").substr(0, 6);
  const char* const words = "of a model";
  EXPECT_EQ(formatted("{} and {} {}: {}{}", name, part, words, "x", std::string()),
            "row and column of a model: x");
}

TEST(Formatted, LeavesBracesOfArgumentsAndSingleBracesAlone) {
  EXPECT_EQ(formatted("{ {} }{", "{}"), "{ {} }{");
  EXPECT_EQ(formatted("{}", std::string_view("a\0b", 3)), std::string("a\0b", 3));
}

TEST(Formatted, WordsRefusalsAndWrongCalls) {
  const Failure refusal = refused("pc 3", "{} of {}", 7, "trees");
  EXPECT_EQ(refusal.error().code, ErrorCode::Refused);
  EXPECT_EQ(refusal.error().text(), "pc 3: 7 of trees");
  const Failure call = usage("there is no output {}", -1);
  EXPECT_EQ(call.error().code, ErrorCode::Usage);
  EXPECT_EQ(call.error().text(), "there is no output -1");
}

}  // namespace
}  // namespace forestvm::test_formatted
