// Texts of users in messages: on one line, in UTF-8, not too long.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <forestvm/internal/printable.hpp>

namespace forestvm::test::test_printable {
namespace {

using std::string_view_literals::operator""sv;

TEST(Printable, KeepsCharacters) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("a\\b \"c\" höhe 木 🌲"), "a\\b \"c\" höhe 木 🌲");
  EXPECT_EQ(in_quotes("höhe"), "\"höhe\"");
}

TEST(Printable, EscapesWhatBreaksLinesOrControlsTerminals) {
  EXPECT_EQ(printable("a\nb\rc\td"), "a\\nb\\rc\\td");
  EXPECT_EQ(printable("\0\x1b[2J\x7f"sv), "\\x00\\x1b[2J\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");  // U+009B, which some terminals take for ESC [
  EXPECT_EQ(printable("\xc2\xa0"), "\xc2\xa0");
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  for (const std::string_view broken :
       {"\xff"sv, "\xc3"sv, "\xc0\xaf"sv, "\xed\xa0\x80"sv, "\xf4\x90\x80\x80"sv}) {
    std::string escaped;
    for (const char c : broken) {
      constexpr char digits[] = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      escaped += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
    EXPECT_FALSE(is_utf8(broken));
    EXPECT_EQ(printable("é" + std::string(broken) + "z"), "é" + escaped + "z");
  }
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde…");
  EXPECT_EQ(printable("abcdé", 5), "abcd…");
  EXPECT_EQ(in_quotes("🌲🌲", 7), "\"🌲…\"");
  EXPECT_EQ(printable("🌲", 2), "…");
}

}  // namespace
}  // namespace forestvm::test::test_printable
