// The reader of CSV files: numbers, headers, cells, accepted and refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/internal/city_hash.hpp>

#include "cli/io/csv.hpp"
#include "cli/io/csv_cells.hpp"
#include "read_rows.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::cli::test_csv_rows {
namespace {

TEST(ParseFloat, ReadsTheNearestFloat) {
  EXPECT_EQ(parse_number<float>("0.1"), 0.1F);
  EXPECT_EQ(parse_number<float>("+1.5"), 1.5F);
  EXPECT_EQ(parse_number<float>("-.5e1"), -5.0F);
  EXPECT_EQ(parse_number<float>("16777217"), 16777216.0F);
  EXPECT_EQ(parse_number<float>("1e-45"), 0x1p-149F);
  EXPECT_EQ(parse_number<float>("inf"), kInf);
  EXPECT_EQ(parse_number<float>("-Infinity"), -kInf);
  EXPECT_TRUE(std::isnan(parse_number<float>("NaN").value()));
}

/// Trainers get tables as float64 numbers, which they round: 16777217 + 2^-30 is 16777217 in float64, and that number
/// is halfway between two float32 numbers.
TEST(ParseFloat, RoundsTheNearestDouble) {
  EXPECT_EQ(parse_number<float>("16777217.0000000009"), 16777216.0F);
  EXPECT_EQ(parse_number<float>("16777217.00000001"), 16777218.0F);
  // The 17 digits with which a number halfway between two float32 numbers is written.
  EXPECT_EQ(parse_number<float>("0.10000002011656761"), 0.10000002384185791F);
}

TEST(ParseFloat, GoesToInfinityAndZeroBeyondTheRange) {
  for (const char* text : {"1e50", "3.5e38", "1e999999999999999999999", "0.001e50",
                           "1234567890123456789012345678901234567890.0", "1e+50", "+1e400"})
    EXPECT_EQ(parse_number<float>(text), kInf) << text;
  EXPECT_EQ(parse_number<float>("-1e50"), -kInf);
  const std::string tiny = "0." + std::string(400, '0') + "1";
  for (const char* text :
       {"1e-50", "1000e-60", "1e-999999999999999999999", "0e999999", "1e-400", tiny.c_str()})
    EXPECT_EQ(parse_number<float>(text), 0.0F) << text;
  EXPECT_TRUE(std::signbit(parse_number<float>("-1e-50").value()));
}

TEST(ParseFloat, RefusesTheRest) {
  for (const char* text : {"", "+", "-", "+-1", "--1", "1.5x", "1_000", "1,5", "0x10", "nan(1)", "e5", ".",
                           "1e", "NA", "true", "1 2", " 1"})
    EXPECT_FALSE(parse_number<float>(text).has_value()) << text;
}

TEST(CsvRows, ReadsNumbersAndMissingCells) {
  expect_values(rows_of("1,2.5\n,nan\n-inf, -0 \n", 2), {1, 2.5F, NAN, NAN, -kInf, -0.0F});
  expect_values(rows_of("1,2", 2), {1, 2});
  expect_values(rows_of(",\n,\n", 2), {NAN, NAN, NAN, NAN});
}

TEST(CsvRows, AcceptsCrlfByteOrderMarkQuotesAndBlankEnd) {
  expect_values(rows_of("\xef\xbb\xbf"
                        "a,b\r\n1,2\r\n3,4\r\n\r\n\n",
                        2),
                {1, 2, 3, 4});
  expect_values(rows_of("\"a \"\"q\"\", b\",\"c\nd\"\n\"1.5\",\"\"\n2, \"3\" \n", 2), {1.5F, NAN, 2, 3});
  expect_values(rows_of("\"\"\n\"\"\n1\n\n", 1), {NAN, NAN, 1});
}

/// The mark is not part of the first cell.
TEST(CsvRows, SkipsAByteOrderMark) {
  const std::string mark = "\xef\xbb\xbf";
  expect_values(rows_of(mark + "b,a\n1,2\n", 2, {"a", "b"}), {2, 1});
  expect_values(rows_of(mark + "5,6\n", 2), {5, 6});
  EXPECT_EQ(refusal("1," + mark + "2\n", {.width = 2, .header = Header::No}),
            "line 1, column 2: '" + mark + "2'" + kNoValue);
}

TEST(CsvRows, DetectsTheHeader) {
  const auto named = rows_of("a,b\n", 2);
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->count, 0U);
  EXPECT_EQ(named->width, 2U);
  expect_values(rows_of("2,0,1\n10,11,12\n", 3, {"0", "1", "2"}), {11, 12, 10});
  expect_values(rows_of("2,0,3\n10,11,12\n", 3), {2, 0, 3, 10, 11, 12});
  expect_values(rows_of("2019,age\n1,2\n", 2, {"age", "2019"}), {2, 1});
  EXPECT_EQ(refusal("age,2019\n1,2\n", 2),
            "line 1: mixes names and numbers, so it may be a header or a row: say which with --header yes or "
            "--header no");
}

/// pandas writes the numbers from 0 as names of unnamed columns; a row may have the same values.
TEST(CsvRows, RefusesToGuessWhatTheNumbersFromZeroAre) {
  const std::string question = ", or a row: say which with --header yes or --header no";
  const std::string four =
      "line 1: has the numbers from 0 to 3, which may be the columns' names as pandas writes them" + question;
  EXPECT_EQ(refusal("0,1,2,3\n10,11,12,13\n", 4), four);
  EXPECT_EQ(refusal("2,0,3,1\n10,11,12,13\n", 4), four);
  EXPECT_EQ(refusal("0,1,2,3\n10,11,12,13\n", 4, {"a", "b", "c", "d"}), four);
  EXPECT_EQ(refusal("0\n5\n", 1),
            "line 1: is 0, which may be the column's name as pandas writes it" + question);
  for (const char* rows : {"0.0,1\n", "0,1.0\n", "00,1\n", "0,0\n", "1,2\n", "0,\n", "+0,1\n"})
    EXPECT_EQ(refusal(rows, 2), "accepted 1 rows") << rows;
  expect_values(rows_of("0,1\n10,11\n", {.width = 2, .header = Header::No}), {0, 1, 10, 11});
  expect_values(rows_of("1,0\n10,11\n", {.width = 2, .header = Header::Yes}), {11, 10});
}

/// Numbers from 1 on are a row, but may be meant as names.
TEST(CsvRows, SaysThatNumbersFromOneAreARow) {
  expect_values(rows_of("1,2,3\n4,5,6\n", 3), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(notice("1,2,3\n4,5,6\n", {.width = 3, .names = {"a", "b", "c"}}),
            "line 1, which has the numbers from 1 to 3, is taken for a row; --header yes takes it for names");
  for (const char* const other : {"1,2,4\n", "1,2,3.0\n", "01,2,3\n", "2,3,4\n", "1,1,1\n"})
    EXPECT_EQ(notice(other, {.width = 3}), "") << other;
  EXPECT_EQ(notice("1,2\n", {.width = 2}), "");
  EXPECT_EQ(notice("1,2,3\n", {.width = 3, .header = Header::No}), "");
}

TEST(CsvRows, TakesTheUsersWordForTheHeader) {
  expect_values(rows_of("5,6\n1,2\n", {.width = 2, .header = Header::Yes}), {1, 2});
  expect_values(rows_of("a,6\n1,2\n", {.width = 2, .header = Header::Yes}), {1, 2});
  expect_values(rows_of("5,6\n1,2\n", {.width = 2, .header = Header::No}), {5, 6, 1, 2});
  EXPECT_EQ(refusal("a,b\n1,2\n", {.width = 2, .header = Header::No}), "line 1, column 1: 'a'" + kNoValue);
  EXPECT_EQ(refusal("5,6\n1,2\n", {.width = 2, .names = {"a", "b"}, .header = Header::Yes}),
            "header: lacks features of the model: 'a', 'b'; has columns that the model lacks: '5', '6'");
  EXPECT_EQ(refusal("1,2\n", {.width = 3, .header = Header::No}),
            "line 1: has 2 cells, the model has 3 features");
}

/// A model without names has the names that trainers and pandas give to unnamed columns.
TEST(CsvRows, MatchesDefaultNames) {
  expect_values(rows_of("f2,f0,f1\n10,11,12\n", 3), {11, 12, 10});
  expect_values(rows_of("Column_1,Column_2,Column_0\n10,11,12\n", 3), {12, 10, 11});
  for (const char* header : {"f0,f1,f2", "Column_0,Column_1,Column_2"})
    EXPECT_EQ(notice(std::string(header) + "\n", {3}), "");
}

TEST(CsvRows, SaysThatAHeaderIsSkipped) {
  const std::string skipped =
      "line 1 is skipped as a header: the model has no feature names, so its columns are taken in order";
  for (const char* header : {"a,b,c", "f0,f1,f3", "f0,f1,f1", "f0,f1,Column_2", "f00,f1,f2", "f0,f1,"})
    EXPECT_EQ(notice(std::string(header) + "\n1,2,3\n", {3}), skipped) << header;
  expect_values(rows_of("f0,f1,f3\n1,2,3\n", 3), {1, 2, 3});
  EXPECT_EQ(notice("5,6,7\n", {.width = 3, .header = Header::Yes}), skipped);
  EXPECT_EQ(notice("c,b,a\n", {3, {"a", "b", "c"}}), "");
  EXPECT_EQ(notice("5,6,7\n", {3}), "");
}

TEST(CsvRows, MatchesColumnsByName) {
  const Names names = {"a", "b", "c"};
  expect_values(rows_of("c,a,b\n1,2,3\n4,5,6\n", 3, names), {2, 3, 1, 5, 6, 4});
  expect_values(rows_of("1,2,3\n", 3, names), {1, 2, 3});
  EXPECT_EQ(refusal("a,x,c,y\n1,2,3,4\n", 3, names),
            "header: lacks features of the model: 'b'; has columns that the model lacks: 'x', 'y'");
  EXPECT_EQ(refusal("a,b,c,d\n1,2,3,4\n", 3, names),
            "header: has columns that the model lacks: 'd'; --extra-columns ignore leaves them out");
  // LightGBM writes `income yearly` as `income_yearly`; other trainers keep names.
  const RowForm underlined{.width = 2, .names = {"income_yearly", "a b"}, .underlined = true};
  expect_values(rows_of("a b,income yearly\n1,2\n", underlined), {2, 1});
  expect_values(rows_of("income_yearly,a b\n1,2\n", underlined), {1, 2});
  EXPECT_EQ(refusal("income_yearly,income yearly\n1,2\n", underlined),
            "header: the file has two columns named 'income yearly'");
  EXPECT_EQ(refusal("income yearly\n1\n", 1, {"income_yearly"}),
            "header: lacks features of the model: 'income_yearly'; has columns that the model lacks: 'income "
            "yearly'");
  // Spaces belong to a name if the model's name has them.
  const Names spaced = {"a", " b", "c "};
  expect_values(rows_of("c ,a, b\n1,2,3\n", 3, spaced), {2, 3, 1});
  expect_values(rows_of("\" b\", a ,c \n1,2,3\n", 3, spaced), {2, 1, 3});
  expect_values(rows_of("c, a ,  b\n1,2,3\n", 3, names), {2, 3, 1});
  expect_values(rows_of("a, b\n1,2\n", {.width = 2, .names = {"a", "_b"}, .underlined = true}), {1, 2});
  EXPECT_EQ(refusal("a,b,c \n1,2,3\n", 3, spaced),
            "header: lacks features of the model: ' b'; has columns that the model lacks: 'b'");
  EXPECT_EQ(refusal("a, a\n1,2\n", 2, {"a", "b"}), "header: the file has two columns named 'a'");
  EXPECT_EQ(refusal("a,b\n1,2\n", 3, names), "header: lacks features of the model: 'c'");
  EXPECT_EQ(refusal("a,b,a\n1,2,3\n", 3, names), "header: the file has two columns named 'a'");
  EXPECT_EQ(refusal("a,b\n1,2\n", 2, {"a", "a"}), "header: the model has two features named 'a'");
  EXPECT_EQ(
      refusal("p,q,r,s,t,u,v,a,b,c\n", 3, names),
      "header: has columns that the model lacks: 'p', 'q', 'r', 's', 't' and 2 more; --extra-columns ignore "
      "leaves them out");
  EXPECT_EQ(refusal("x\n", 7, {"a", "b", "c", "d", "e", "f", "g"}),
            "header: lacks features of the model: 'a', 'b', 'c', 'd', 'e' and 2 more; has columns that the "
            "model lacks: 'x'");
}

TEST(CsvRows, NamesLineAndColumnOfABadCell) {
  EXPECT_EQ(refusal("a,b\n1,2\n3,x\n", 2), "line 3, column 2: 'x'" + kNoValue);
  EXPECT_EQ(refusal("\"a\nb\",c\n1,!\n", 2), "line 3, column 2: '!'" + kNoValue);
  EXPECT_EQ(refusal("1,2\n3\n", 2), "line 2: has 1 cells, the model has 2 features");
  EXPECT_EQ(refusal("1,2\n3,4,5\n", 2), "line 2: has more cells than the model's 2 features");
  EXPECT_EQ(refusal("1,2\n\n3,4\n", 2),
            "line 2: a blank line between rows (a missing value in a one-column file is \"\")");
  EXPECT_EQ(refusal("a,b\n1,\"2\n", 2), "line 2, column 2: a quoted cell never ends");
  EXPECT_EQ(refusal("a,b\n\"1\"2,3\n", 2), "line 2, column 1: text after the closing quote of a cell");
  EXPECT_NE(refusal("1,2\n3,4\r5,6\n", 2).find("line 2, column 2: '4\\r5' is not"), std::string::npos);
  EXPECT_EQ(refusal("1,2\n3,a\x1b[2J\n", 2), "line 2, column 2: 'a\\x1b[2J'" + kNoValue);
}

TEST(CsvRows, NamesMarksThatNumbersDoNotHave) {
  const std::string mark = " is not a number: a decimal point is the only mark that numbers have";
  EXPECT_EQ(refusal("a;b\n43,5;2\n", 2), "line 2, column 1: '43,5'" + mark);
  EXPECT_EQ(refusal("a,b\n1,\"1,000\"\n", 2), "line 2, column 2: '1,000'" + mark);
  EXPECT_EQ(refusal("a;b\n1,x;2\n", 2), "line 2, column 1: '1,x'" + kNoValue);
}

TEST(CsvRows, SaysThatLinesEndInACarriageReturnAlone) {
  const std::string ends =
      "line 1: has a carriage return inside: lines end in a line feed, or in both, not in a carriage return alone";
  EXPECT_EQ(refusal("a,b\r1,2\r3,4\r", 2, {"a", "b"}), ends);
  EXPECT_EQ(refusal("1,2\r3,4\r", 2), ends);
  expect_values(rows_of("\"a\rb\",c\n1,2\n", 2), {1, 2});
}

TEST(CsvRows, NamesBothWidths) {
  EXPECT_EQ(refusal("1,2,3\n", 2), "has 3 columns, the model has 2 features");
  EXPECT_EQ(refusal("1,2,3,4\n", 2), "has more than 2 columns, the model has 2 features");
  EXPECT_EQ(
      refusal("1\n", 2),
      "has 1 columns, the model has 2 features; line 1 has no comma, semicolon, tab or blank (--separator names "
      "another)");
  EXPECT_EQ(refusal("a,b,c\n1,2,3\n", 2), "has 3 columns, the model has 2 features");
  EXPECT_EQ(refusal("1,2,3,4\n", 2, {"a", "b"}), "has more than 2 columns, the model has 2 features");
}

/// A line in a pipe may be endless, so the reader must not look for its end.
TEST(CsvRows, ReadsNoMoreThanOneCellBeyondTheModelsFeatures) {
  const std::string commas(10'000'000, ',');
  for (const std::string& text : {commas, "1,2\n" + commas, "a,b\n" + commas, "\"a\",b" + commas}) {
    Source source = Source::from_text(text);
    auto reader = csv_reader(source, {2});
    Rows rows;
    EXPECT_FALSE(reader && (*reader)->read(10, rows).ok());
    EXPECT_GT(source.bytes_left().value(), 9'999'900u);
  }
  // Extra cells of a header are read for the error message, up to a limit.
  EXPECT_EQ(refusal("a,b" + commas, 2, {"a", "b"}), "has more than 65537 columns, the model has 2 features");
  // More of them may be left out.
  const RowForm ignores{.width = 2, .names = {"a", "b"}, .ignores_extra = true};
  const std::string most(1 << 20, ',');
  expect_values(rows_of("b" + most + ",a\n1" + most + ",2\n", ignores), {2, 1});
  EXPECT_EQ(refusal("b" + most + ",,a\n", ignores),
            "has 1048579 columns, the model has 2 features; at most 1048576 columns are left out");
}

TEST(CsvRows, RefusesLongCells) {
  const std::string megabyte(1 << 20, '1'), megabyte_and_more(3 << 20, '1');
  EXPECT_EQ(refusal("1,2\n3," + megabyte_and_more, 2), "line 2, column 2: a cell of more than 1 MiB");
  EXPECT_EQ(refusal("1,\"" + megabyte_and_more, 2), "line 1, column 2: a cell of more than 1 MiB");
  EXPECT_EQ(refusal(std::string(3 << 20, ' '), 2), "line 1, column 1: a cell of more than 1 MiB");
  expect_values(rows_of("1,2\n3," + megabyte, 2), {1, 2, 3, kInf});
}

TEST(CsvRows, TakesQuotesInsideACellAsTheyAre) {
  EXPECT_EQ(refusal("1,2\n3,4\"\n", 2), "line 2, column 2: '4\"'" + kNoValue);
  expect_values(rows_of("a\"b,c\n1,2\n", 2, {"c", "a\"b"}), {2, 1});
  EXPECT_EQ(refusal("1,2\n\"3\"\r,4\n", 2), "line 2, column 1: text after the closing quote of a cell");
  expect_values(rows_of("1,2\r\n\"3\",\"4\" \r\n", 2), {1, 2, 3, 4});
  expect_values(rows_of("1,2\r\n3,\"4\"\r", 2), {1, 2, 3, 4});
}

TEST(CsvRows, RefusesOtherFormatsByName) {
  EXPECT_EQ(refusal("", 2), "is empty; expected rows: CSV in UTF-8, NPY, NPZ, libsvm or JSON lines");
  EXPECT_EQ(refusal("\n\n", 2), "line 1: is blank; expected a header or a row");
  const std::string expected = "; expected rows: CSV in UTF-8, NPY, NPZ, libsvm or JSON lines";
  EXPECT_EQ(refusal("PAR1\x15...", 2), "is a Parquet file" + expected);
  EXPECT_EQ(refusal("BZh91AY&SY..", 2), "is a bzip2 file" + expected);
  EXPECT_EQ(refusal("\xfd\x37zXZ..", 2), "is an xz file" + expected);
  EXPECT_EQ(refusal("\x28\xb5\x2f\xfd..", 2), "is a Zstandard file" + expected);
  EXPECT_EQ(refusal(std::string("\xff\xfe\0\0a\0\0\0", 8), 2), "is UTF-32 text" + expected);
  EXPECT_EQ(refusal(std::string("\xff\xfe"
                                "a\0",
                                4),
                    2),
            "is UTF-16 text" + expected);
  EXPECT_EQ(refusal("<!DOCTYPE html>\n", 2), "is an HTML page" + expected);
  EXPECT_EQ(refusal("version https://git-lfs.github.com/spec/v1\n", 2),
            "is a pointer of Git LFS instead of the file (git lfs pull)" + expected);
  // Such names of columns are none of these.
  const Names parameters = {"PAR1", "ARROW1"};
  expect_values(rows_of("PAR1,ARROW1\n1,2\n", 2, parameters), {1, 2});
  expect_values(rows_of("ARROW1,PAR1\n1,2\n", 2, parameters), {2, 1});
  expect_values(rows_of("<NA>,2\n", 2), {NAN, 2});
  EXPECT_EQ(refusal("{\"learner\": 1}", {.width = 2, .format = RowFormat::Csv}),
            "is a JSON document; expected rows: CSV in UTF-8, NPY, NPZ, libsvm or JSON lines");
  EXPECT_EQ(refusal("\x80\x04}\x94.", 2),
            "is a Python pickle; expected rows: CSV in UTF-8, NPY, NPZ, libsvm or JSON lines");
  EXPECT_EQ(
      refusal(std::string("a,b\0c\n1,2\n", 10), 2, {"a", "b"}),
      "line 1: holds a byte 0, so it is not text; expected rows: CSV in UTF-8, NPY, NPZ, libsvm or JSON lines");
  EXPECT_EQ(
      refusal(std::string("a,b\n1,2\n3,\0\n", 12), 2, {"a", "b"}),
      "line 3: holds a byte 0, so it is not text; expected rows: CSV in UTF-8, NPY, NPZ, libsvm or JSON lines");
}

TEST(CsvRows, ReadsLongInputsAcrossBuffers) {
  std::string text;
  std::vector<float> expected;
  for (int i = 0; i < 60000; ++i) {
    const int half = i / 2;
    text += std::to_string(i) + ",\"" + std::to_string(half) + ".5\",\n";
    expected.insert(expected.end(), {static_cast<float>(i), static_cast<float>(half) + 0.5F, NAN});
  }
  const support::TemporaryFolder folder;
  expect_values(rows_of(Source::open(folder.write("rows.csv", text)).value(), {3}), expected);
}

TEST(CsvRows, ReadsFloat64WhereModelsCompareIt) {
  const RowForm wide{.width = 2, .wide = true};
  const double inf = std::numeric_limits<double>::infinity();
  expect_wide_values(rows_of("0.1,16777217\n1e50,-1e-60\n,nan\n1e400,-1e-400\n1732233600.125,0.3\n", wide),
                     {0.1, 16777217, 1e50, -1e-60, NAN, NAN, inf, -0.0, 1732233600.125, 0.3});
  expect_wide_values(rows_of("a,b\n0.1,2\n", wide), {0.1, 2});
  // Missing numbers are compared as the reader has read them.
  const RowForm marked{.width = 2, .wide = true, .missing = parse_missing("0.1")};
  expect_wide_values(rows_of("0.1,1\n0.10000000149011612,0.1\n", marked), {NAN, 1, 0.10000000149011612, NAN});
  expect_values(rows_of("0.1,1\n", 2), {0.1F, 1});
}

TEST(CsvRows, SurvivesEveryTruncationAndFlippedByte) {
  const std::string good = "\"a\",\"b \"\"\",c\r\n1.5,,-3e5\r\n\"4\",nan,6\n\n";
  ASSERT_TRUE(rows_of(good, 3).ok());
  for (std::size_t at = 0; at < good.size(); ++at) {
    static_cast<void>(rows_of(good.substr(0, at), 3));
    for (int byte = 0; byte < 256; ++byte) {
      std::string bad = good;
      bad[at] = static_cast<char>(byte);
      const auto rows = rows_of(bad, 3);
      if (rows) {
        EXPECT_EQ(rows->values.size(), rows->count * rows->width);
      }
    }
  }
}

/// Cells of hashed features are texts, of which rows hold the codes; spaces belong to a text, quotes do not.
TEST(CsvRows, HashesTexts) {
  const std::vector<std::uint32_t> hashed = {1, 2};
  RowForm form{.width = 3, .wide = true, .hashed = hashed};
  const auto code = [](const char* text) { return static_cast<double>(category_code(text)); };
  const auto rows = rows_of(
      "1.5,red,7\r\n0.1,\"\",\n16777217.0000001,\" a\", a\n, b ,\"a,\"\"b\"\"\"\nnan,nan,1.0\n2, \"a\" ,ß\r\n",
      form);
  expect_wide_values(rows, {1.5, code("red"), code("7"), static_cast<double>(0.1F), code(""), code(""),
                            16777218.0, code(" a"), code(" a"), NAN, code(" b "), code("a,\"b\""), NAN,
                            code("nan"), code("1.0"), 2, code("a"), code("ß")});
  EXPECT_TRUE(rows->hashed);
  EXPECT_TRUE(rows->block().hashed);
  // Where blanks separate cells, those before the first one do not belong to its text.
  const std::vector<std::uint32_t> first = {0};
  expect_wide_values(rows_of("    red 1\n\tblue  2 \n",
                             RowForm{.width = 2, .wide = true, .hashed = first, .separator = kBlanks}),
                     {code("red"), 1, code("blue"), 2});
  EXPECT_EQ(
      refusal("x1,red,7\n1,red,7\nred,1,2\n", form),
      "line 3, column 1: 'red' is not a number, true or false (a missing value is an empty cell, nan, or a word of "
      "--na)");
}

TEST(CsvRows, FindsTheHeaderOfTexts) {
  const std::vector<std::uint32_t> hashed = {0, 2};
  const Names names = {"colour", "size", "shape"};
  const RowForm form{.width = 3, .names = names, .wide = true, .hashed = hashed};
  const auto code = [](const char* text) { return static_cast<double>(category_code(text)); };
  expect_wide_values(rows_of("size,shape,colour\n1,round,red\n", form), {code("red"), 1, code("round")});
  expect_wide_values(rows_of("red,1,round\n", form), {code("red"), 1, code("round")});
  const std::vector<std::uint32_t> all = {0, 1};
  expect_wide_values(rows_of("a,b\n", RowForm{.width = 2, .wide = true, .hashed = all}),
                     {code("a"), code("b")});
}

/// A number that stands for a missing value is rounded to float32 where the cells are.
TEST(CsvRows, MissingNumbersBesideTexts) {
  const std::vector<std::uint32_t> hashed = {0};
  const RowForm form{.width = 2, .wide = true, .hashed = hashed, .missing = parse_missing("0.1")};
  expect_wide_values(rows_of("0.1,0.1\n", form), {static_cast<double>(category_code("0.1")), NAN});
}

}  // namespace
}  // namespace forestvm::cli::test_csv_rows
