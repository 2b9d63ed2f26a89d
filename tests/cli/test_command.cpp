// Parsing of command lines, errors, and help texts.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "cli/commands.hpp"

namespace forestvm::cli::test_command {
namespace {

const Command kSample = {
    "sample",
    "does nothing",
    {"sample FILE"},
    {{"FILE", "a file"}, {"OTHER", "another"}},
    {{"out", 'o', "OUT", "a value"}, {"count", '\0', "N", "a number"}, {"fast", '\0', "", "a flag"}},
    "  forestvm sample x\n",
    nullptr,
    nullptr};

std::string refusal(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(kSample, words);
  if (arguments) return "accepted";
  EXPECT_EQ(arguments.error().code, ErrorCode::Usage);
  return arguments.error().text();
}

TEST(Arguments, AreReadInEveryForm) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"a", "-", "-o", "x", "--count", "7", "--fast"},
        {"--fast", "--count=7", "-ox", "a", "-"},
        {"--fast", "--count=7", "-o=x", "a", "-"},
        {"--out", "x", "--count", "7", "--fast", "--", "a", "-"}}) {
    const auto arguments = parse_arguments(kSample, words);
    ASSERT_TRUE(arguments.ok()) << arguments.error().text();
    EXPECT_EQ(arguments->get("FILE"), "a");
    EXPECT_EQ(arguments->get("OTHER"), "-");
    EXPECT_EQ(arguments->get("out"), "x");
    EXPECT_TRUE(arguments->has("fast"));
    EXPECT_EQ(arguments->number("count", 1, 9, 3).value(), 7U);
  }
}

TEST(Arguments, TakeNegativeNumbersAndDashesAsValues) {
  EXPECT_EQ(parse_arguments(kSample, {"--count", "-999"}).value().get("count"), "-999");
  EXPECT_EQ(parse_arguments(kSample, {"--count=-inf"}).value().get("count"), "-inf");
  EXPECT_EQ(parse_arguments(kSample, {"-o", "-"}).value().get("out"), "-");
  EXPECT_EQ(parse_arguments(kSample, {"-o", "a file"}).value().get("out"), "a file");
}

/// An = after a short option is not part of the value, as after a long one.
TEST(Arguments, TakeAnEqualsSignAfterALetter) {
  EXPECT_EQ(parse_arguments(kSample, {"-o=a=b"}).value().get("out"), "a=b");
  EXPECT_EQ(parse_arguments(kSample, {"-o", "=x"}).value().get("out"), "=x");
  EXPECT_EQ(parse_arguments(kSample, {"--out==x"}).value().get("out"), "=x");
  EXPECT_EQ(parse_arguments(kSample, {"--", "-o=x"}).value().get("FILE"), "-o=x");
  EXPECT_EQ(refusal({"-o="}), "option '--out' needs a value");
  EXPECT_EQ(refusal({"-h=1"}), "option '-h' takes no value");
}

TEST(Arguments, HaveDefaults) {
  const auto arguments = parse_arguments(kSample, {});
  ASSERT_TRUE(arguments.ok());
  EXPECT_FALSE(arguments->has("fast"));
  EXPECT_EQ(arguments->get("out", "-"), "-");
  EXPECT_EQ(arguments->number("count", 1, 9, 3).value(), 3U);
  EXPECT_EQ(required(*arguments, "FILE").error().text(), "argument FILE is missing");
}

TEST(Arguments, RefuseWhatTheyDoNotKnow) {
  EXPECT_EQ(refusal({"--wrong"}), "unknown option '--wrong'");
  EXPECT_EQ(refusal({"--wrong=3"}), "unknown option '--wrong'");
  EXPECT_EQ(refusal({"-x"}), "unknown option '-x'");
  // Options follow, so a word that begins like an option is not taken as the value.
  EXPECT_EQ(refusal({"--cou", "3"}), "unknown option '--cou'; did you mean '--count'?");
  EXPECT_EQ(refusal({"--fats"}), "unknown option '--fats'; did you mean '--fast'?");
  EXPECT_EQ(refusal({"-out", "x"}), "unknown option '-out'; did you mean '--out'?");
  EXPECT_EQ(parse_arguments(kSample, {"-o", "x", "--", "-out"}).value().get("FILE"), "-out");
  EXPECT_EQ(refusal({"--hlep=1"}), "unknown option '--hlep'; did you mean '--help'?");
  EXPECT_EQ(refusal({"a", "b", "c"}), "too many arguments");
  EXPECT_EQ(refusal({"--count", "1", "--count", "2"}), "option '--count' is given twice");
  EXPECT_EQ(refusal({"--count"}), "option '--count' needs a value");
  EXPECT_EQ(refusal({"-o"}), "option '--out' needs a value");
  EXPECT_EQ(refusal({"--count", "--fast"}), "option '--count' needs a value");
  EXPECT_EQ(refusal({"--fast=1"}), "option '--fast' takes no value");
  EXPECT_EQ(refusal({"--FILE", "x"}), "unknown option '--FILE'");
}

TEST(Arguments, CheckNumbersAndChoices) {
  constexpr std::array<std::string_view, 2> names = {"one", "two"};
  for (const char* text : {"0", "10", "-1", "", "x", "1x", "1.0", "99999999999999999999"}) {
    const auto arguments =
        parse_arguments(kSample, {std::string("--count=") + text, "--out=" + std::string(text)});
    if (!arguments) continue;  // "--count=" without a value
    EXPECT_EQ(arguments->number("count", 1, 9, 3).error().text(),
              "--count '" + std::string(text) + "': expected a whole number from 1 to 9");
    EXPECT_EQ(arguments->choice("out", names, 0).error().text(),
              "--out '" + std::string(text) + "': expected one of one, two");
  }
  using Numbers = std::vector<std::uint64_t>;
  EXPECT_EQ(parse_arguments(kSample, {"--count", "1,9,1"}).value().numbers("count", 1, 9, {}).value(),
            (Numbers{1, 9, 1}));
  EXPECT_EQ(parse_arguments(kSample, {}).value().numbers("count", 1, 9, {3}).value(), Numbers{3});
  for (const char* text : {"1,0", "1,10", "1,", ",1", "1,,2", "1 2", "x"})
    EXPECT_EQ(parse_arguments(kSample, {"--count", text}).value().numbers("count", 1, 9, {}).error().text(),
              "--count '" + std::string(text) + "': expected whole numbers from 1 to 9, separated by commas");
  EXPECT_EQ(parse_arguments(kSample, {"--out", "two"}).value().choice("out", names, 0).value(), 1U);
}

TEST(Help, ShowsEveryOptionWithinTheLine) {
  for (const Command* command : commands()) {
    const std::string text = help(*command);
    for (const Option& option : command->options)
      EXPECT_NE(text.find(std::string("--") + option.name), std::string::npos) << option.name;
    for (const Positional& row : command->positionals) EXPECT_NE(text.find(row.name), std::string::npos);
    EXPECT_NE(text.find("Example:\n  forestvm "), std::string::npos);
    EXPECT_NE(text.find("Exit codes:"), std::string::npos);
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      EXPECT_LE(text.find('\n', at) - at, 120U) << text.substr(at, 130);
  }
}

}  // namespace
}  // namespace forestvm::cli::test_command
