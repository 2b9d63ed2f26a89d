// The schedule language's text: printed schedules read back, texts that are read print canonically, and texts
// that cannot be read are refused at their line and column.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/schedule.hpp>

namespace forestvm::test::test_schedule_text {
namespace {

/// One directive of each kind, with all its arguments.
const std::vector<std::string> kEveryDirective = {
    "plan(BATCH)",
    "tile(batch, b0, b1, 64)",
    "split(tree, ta, tb, N_TREES)",
    "reorder(b0, tree, b1)",
    "unroll(b1)",
    "specialize(ta.tree)",
    "gpuDimension(b0, grid.x)",
    "cache(b0, 3)",
    "parallel(b0)",
    "interleave(ta.b1)",
    "unrollWalk(b1, 4)",
    "peelWalk(b1, 2)",
    "atomicReduce(t0)",
    "sharedReduce(t0)",
    "vectorReduce(t0, 16)",
    "layout(tree, sparse)",
    "encode(u8)",
    "tileTree(tree, 8, probability)",
    "orderTrees(class)",
    "accumulate(leaves)",
};

Schedule parsed(std::string_view text) {
  Result<Schedule> schedule = parse_schedule(text);
  EXPECT_TRUE(schedule.ok()) << text << "\n" << (schedule.ok() ? "" : schedule.error().text());
  return schedule.ok() ? std::move(schedule).value() : Schedule{};
}

std::string error_of(std::string_view text) {
  const Result<Schedule> schedule = parse_schedule(text);
  return schedule.ok() ? "it is accepted" : schedule.error().text();
}

TEST(ScheduleText, EveryDirectiveReadsAndPrintsTheSame) {
  std::string all;
  for (const std::string& text : kEveryDirective) {
    const Schedule schedule = parsed(text);
    EXPECT_EQ(print(schedule), text + "\n");
    EXPECT_EQ(parsed(print(schedule)), schedule);
    all += text + "\n";
  }
  EXPECT_EQ(print(parsed(all)), all);
}

TEST(ScheduleText, TheListAboveHasEveryDirective) {
  constexpr std::size_t rows = 0
#define FVM_DIRECTIVE(Name, method, required, parameters, meaning) +1
#include <forestvm/internal/schedule.def>
      ;
  EXPECT_EQ(kEveryDirective.size(), rows);
}

TEST(ScheduleText, OptionalArgumentsMayBeLeftOut) {
  EXPECT_EQ(print(parsed("cache(b0); unrollWalk(b1)")), "cache(b0)\nunrollWalk(b1)\n");
}

TEST(ScheduleText, SeparatorsBlanksAndCommentsDoNotMatter) {
  const Schedule plain = parsed("tile(batch, b0, b1, 64)\nparallel(b0)\n");
  for (const char* text : {
           "tile(batch,b0,b1,64);parallel(b0)",
           ";;\n ; tile ( batch ,\tb0 , b1 , 64 ) ; ; parallel(b0);",
           "# first\n\n\n  tile(batch, b0, b1, 64)  # second; parallel(tree)\n\tparallel(b0) # last",
           "tile(batch, b0, b1, 64)\r\nparallel(b0)\r\n",
           "\r\n\r\n# a comment\r\ntile(batch, b0, b1, 64) # another\r\n;parallel(b0)",
           "tile(batch, b0, b1, 0064)\nparallel(b0)\n#",
       })
    EXPECT_EQ(parsed(text), plain) << text;
  for (const char* text : {"", " ", "\n\n", ";", "#", "# only a comment", "\r\n", ";;\n;"})
    EXPECT_TRUE(parsed(text).directives.empty()) << text;
}

TEST(ScheduleText, PlacesAreRemembered) {
  const Schedule schedule = parsed("# title\n\n  tile(batch, b0, b1, 64) ; parallel(b0)\r\n\tunroll(b1)");
  ASSERT_EQ(schedule.directives.size(), 3u);
  EXPECT_EQ(location_of(schedule, 0), "line 3, column 3");
  EXPECT_EQ(location_of(schedule, 1), "line 3, column 29");
  EXPECT_EQ(location_of(schedule, 2), "line 4, column 2");
  EXPECT_EQ(location_of(Schedule().parallel("batch"), 0), "directive 1");
}

TEST(ScheduleText, TheBuilderSaysTheSame) {
  const Schedule built = Schedule()
                             .tile("batch", "b0", "b1", 64)
                             .split(std::string("tree"), std::string_view("ta"), "tb", kTreeCountName)
                             .reorder("b0", "ta", "b1")
                             .unrollWalk("ta.b1")
                             .unrollWalk("tb.b1", 3u)
                             .layout("ta", "sparse");
  const Schedule text = parsed(
      "tile(batch, b0, b1, 64); split(tree, ta, tb, N_TREES); reorder(b0, ta, b1); unrollWalk(ta.b1);"
      "unrollWalk(tb.b1, 3); layout(ta, sparse)");
  EXPECT_EQ(built, text);
  EXPECT_EQ(print(built), print(text));
  EXPECT_TRUE(check_schedule(built).ok());
}

TEST(ScheduleText, ErrorsSayLineAndColumn) {
  EXPECT_EQ(error_of("parallel(batch) parallel(b0)"),
            "line 1, column 17: expected ';' or a new line after the directive, found 'p'");
  EXPECT_EQ(error_of("\n\n  paralel(batch)"),
            "line 3, column 3: unknown directive 'paralel'; did you mean 'parallel'?");
  EXPECT_EQ(error_of("interlieve(b)"),
            "line 1, column 1: unknown directive 'interlieve'; did you mean 'interleave'?");
  EXPECT_EQ(error_of("frobnicate(b)"), "line 1, column 1: unknown directive 'frobnicate'");
  EXPECT_EQ(error_of("parallel"), "line 1, column 9: expected '(', found the end");
  EXPECT_EQ(error_of("parallel(\r\nbatch)"),
            "line 1, column 11: expected an argument, found the end of the line");
  EXPECT_EQ(error_of("parallel(batch,)"), "line 1, column 16: expected an argument, found ')'");
  EXPECT_EQ(error_of("parallel(batch"), "line 1, column 15: expected ')', found the end");
  EXPECT_EQ(error_of(std::string_view("parallel(\0batch)", 16)),
            "line 1, column 10: expected an argument, found byte 0");
  EXPECT_EQ(error_of("parallel(\xff)"), "line 1, column 10: expected an argument, found byte 255");
  EXPECT_EQ(error_of("parallel(batch);\n  tile(batch, b0, b1, 0)"),
            "line 2, column 23: expected an integer from 1, found 0");
  EXPECT_EQ(error_of("4(batch)"), "line 1, column 1: expected a directive, found '4'");
}

TEST(ScheduleText, HugeIntegersAreRefused) {
  EXPECT_EQ(print(parsed("tile(batch, b0, b1, 4294967295)")), "tile(batch, b0, b1, 4294967295)\n");
  EXPECT_EQ(error_of("tile(batch, b0, b1, 4294967296)"),
            "line 1, column 21: 4294967296 is more than 4294967295");
  EXPECT_EQ(error_of("tile(batch, b0, b1, 18446744073709551615)"),
            "line 1, column 21: 18446744073709551615 is more than 4294967295");
  EXPECT_EQ(error_of("tile(batch, b0, b1, 18446744073709551616)"),
            "line 1, column 21: 18446744073709551616 is more than 4294967295");
}

TEST(ScheduleText, BuiltArgumentsAreChecked) {
  const auto refusal = [](const Schedule& schedule) {
    const Result<void> checked = check_schedule(schedule);
    return checked.ok() ? "it is accepted" : checked.error().text();
  };
  EXPECT_EQ(refusal(Schedule().parallel("batch").parallel(3)), "directive 2: expected a loop, found 3");
  EXPECT_EQ(refusal(Schedule().tile("batch", "b0", "b1", -1)),
            "directive 1: 18446744073709551615 is more than 4294967295");
  EXPECT_EQ(refusal(Schedule().tile("batch", "b0", "b1")),
            "directive 1: expected tile(loop, new loop, new loop, size), found 3 arguments");
  EXPECT_EQ(refusal(Schedule().encode("u32")),
            "directive 1: expected one of u8, u16, none, auto, found 'u32'");
}

TEST(ScheduleText, BuiltNamesMustReadBack) {
  for (const char* name : {"", "b 0", "0b", "b0)", "b;", "a.b.c", ".b", "b.", "gr\xc3\xb6\xc3\x9ft", "b\n"}) {
    EXPECT_FALSE(check_schedule(Schedule().parallel(name)).ok()) << name;
    EXPECT_FALSE(check_schedule(Schedule().tile("batch", name, "b1", 8)).ok()) << name;
  }
}

TEST(ScheduleText, RandomBytesNeverCrash) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> byte(0, 255), length(0, 60);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(static_cast<std::size_t>(length(random)), ' ');
    for (char& c : text) c = static_cast<char>(byte(random));
    const Result<Schedule> schedule = parse_schedule(text);
    if (!schedule.ok()) continue;
    EXPECT_EQ(parsed(print(*schedule)), *schedule);
  }
}

TEST(ScheduleText, DamagedTextNeverCrashes) {
  std::string all;
  for (const std::string& text : kEveryDirective) all += text + "\n";
  constexpr std::string_view pieces = "(),.;#\n\r\t 09abz_\xff";
  std::mt19937 random(8);
  std::uniform_int_distribution<std::size_t> piece(0, pieces.size() - 1), edits(1, 4);
  std::size_t accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = kEveryDirective[random() % kEveryDirective.size()] + "\n" +
                       kEveryDirective[random() % kEveryDirective.size()];
    for (std::size_t k = edits(random); k > 0; --k) {
      const std::size_t at = random() % (text.size() + 1);
      if (random() % 2 == 0)
        text.insert(at, 1, pieces[piece(random)]);
      else
        text.erase(at, random() % 3);
    }
    const Result<Schedule> schedule = parse_schedule(text);
    if (!schedule.ok()) continue;
    ++accepted;
    EXPECT_TRUE(check_schedule(*schedule).ok()) << text;
    EXPECT_EQ(parsed(print(*schedule)), *schedule) << text;
  }
  EXPECT_GT(accepted, 500u);
}

/// The comment behind a plan says why it was chosen, and is kept; schedules that differ in remarks only are equal.
TEST(ScheduleText, KeepsTheRemarksOfPlans) {
  const std::string text =
      "plan(8)  # walks values, because it pays; 1.5 us\nreorder(tree, batch)\nplan(BATCH)\n";
  const Result<Schedule> schedule = parse_schedule(
      "plan(8) #  walks values, because it pays; 1.5 us \r\n"
      "reorder(tree, batch) # dropped\n# dropped\nplan(BATCH) #\n");
  ASSERT_TRUE(schedule.ok()) << schedule.error().text();
  EXPECT_EQ(schedule->directives[0].remark, "walks values, because it pays; 1.5 us");
  EXPECT_EQ(schedule->directives[1].remark, "");
  EXPECT_EQ(print(*schedule), text);
  EXPECT_EQ(print(*parse_schedule(text)), text);
  EXPECT_EQ(*parse_schedule("plan(8); reorder(tree, batch); plan(BATCH)"), *schedule);
}

}  // namespace
}  // namespace forestvm::test::test_schedule_text
