// The reader of rows and the writer of predictions: NPY and CSV, accepted and refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/io/csv.hpp"
#include "cli/io/npy.hpp"
#include "cli/io/npy_header.hpp"
#include "cli/io/predictions.hpp"
#include "cli/io/quote.hpp"
#include "cli/io/rows.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::cli {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

using Names = std::vector<std::string_view>;

Result<Rows> rows_of(Source source, const RowForm& form) {
  FVM_ASSIGN(RowReader reader, RowReader::open(std::move(source), form));
  Rows rows;
  FVM_TRY(reader.next(std::numeric_limits<std::size_t>::max(), rows));
  return rows;
}

Result<Rows> rows_of(std::string text, const RowForm& form) {
  return rows_of(Source::from_text(std::move(text)), form);
}

Result<Rows> rows_of(std::string text, std::size_t width, const Names& names = {}) {
  return rows_of(std::move(text), RowForm{width, names});
}

/// Returns the error's text, or what was accepted instead.
std::string refusal(std::string text, const RowForm& form) {
  const auto rows = rows_of(std::move(text), form);
  if (rows) return "accepted " + std::to_string(rows->count) + " rows";
  EXPECT_EQ(rows.error().code, ErrorCode::Refused);
  return rows.error().text();
}

std::string refusal(std::string text, std::size_t width, const Names& names = {}) {
  return refusal(std::move(text), RowForm{width, names});
}

/// Returns the notice for the user about how a file is read.
std::string notice(std::string text, const RowForm& form) {
  const auto reader = RowReader::open(Source::from_text(std::move(text)), form);
  return reader ? reader->notice() : reader.error().text();
}

/// Compares floats: NaN equals NaN, -0 differs from 0.
void expect_values(const Result<Rows>& rows, const std::vector<float>& expected) {
  ASSERT_TRUE(rows.ok()) << rows.error().text();
  ASSERT_EQ(rows->values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(rows->values[i])) << i;
    } else {
      EXPECT_EQ(rows->values[i], expected[i]) << i;
      EXPECT_EQ(std::signbit(rows->values[i]), std::signbit(expected[i])) << i;
    }
  }
}

template <class T>
std::string bytes_of(const std::vector<T>& values, bool swapped = false) {
  std::string out;
  for (const T& value : values) {
    std::string one(sizeof(T), '\0');
    std::memcpy(one.data(), &value, sizeof(T));
    out += swapped ? std::string(one.rbegin(), one.rend()) : one;
  }
  return out;
}

std::string npy(std::string_view dictionary, const std::string& data, char major = 1) {
  std::string text(dictionary);
  text += '\n';
  std::string out(kNpyMagic);
  out += {major, '\0', static_cast<char>(text.size() & 0xffU), static_cast<char>(text.size() >> 8U)};
  if (major > 1) out += std::string(2, '\0');
  return out + text + data;
}

std::string npy2(std::string_view dtype, const std::string& data, std::string_view shape = "(2, 2)",
                 bool fortran = false) {
  return npy("{'descr': '" + std::string(dtype) + "', 'fortran_order': " + (fortran ? "True" : "False") +
                 ", 'shape': " + std::string(shape) + ", }",
             data);
}

// --- numbers -------------------------------------------------------------------------------------------

TEST(ParseFloat, ReadsTheNearestFloat) {
  EXPECT_EQ(parse_float("0.1"), 0.1F);
  EXPECT_EQ(parse_float("+1.5"), 1.5F);
  EXPECT_EQ(parse_float("-.5e1"), -5.0F);
  EXPECT_EQ(parse_float("16777217"), 16777216.0F);
  EXPECT_EQ(parse_float("16777217.0000001"), 16777218.0F);  // rounding by way of double would give 16777216
  EXPECT_EQ(parse_float("1e-45"), 0x1p-149F);
  EXPECT_EQ(parse_float("inf"), kInf);
  EXPECT_EQ(parse_float("-Infinity"), -kInf);
  EXPECT_TRUE(std::isnan(parse_float("NaN").value()));
}

TEST(ParseFloat, GoesToInfinityAndZeroBeyondTheRange) {
  for (const char* text : {"1e50", "3.5e38", "1e999999999999999999999", "0.001e50",
                           "1234567890123456789012345678901234567890.0", "1e+50", "+1e400"})
    EXPECT_EQ(parse_float(text), kInf) << text;
  EXPECT_EQ(parse_float("-1e50"), -kInf);
  const std::string tiny = "0." + std::string(400, '0') + "1";
  for (const char* text :
       {"1e-50", "1000e-60", "1e-999999999999999999999", "0e999999", "1e-400", tiny.c_str()})
    EXPECT_EQ(parse_float(text), 0.0F) << text;
  EXPECT_TRUE(std::signbit(parse_float("-1e-50").value()));
}

TEST(ParseFloat, RefusesTheRest) {
  for (const char* text : {"", "+", "-", "+-1", "--1", "1.5x", "1_000", "1,5", "0x10", "nan(1)", "e5", ".",
                           "1e", "NA", "true", "1 2", " 1"})
    EXPECT_FALSE(parse_float(text).has_value()) << text;
}

// --- CSV -------------------------------------------------------------------------------------------------

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
            "line 1, column 2: '" + mark + "2' is not a number (a missing value is an empty cell or nan)");
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

TEST(CsvRows, TakesTheUsersWordForTheHeader) {
  expect_values(rows_of("5,6\n1,2\n", {.width = 2, .header = Header::Yes}), {1, 2});
  expect_values(rows_of("a,6\n1,2\n", {.width = 2, .header = Header::Yes}), {1, 2});
  expect_values(rows_of("5,6\n1,2\n", {.width = 2, .header = Header::No}), {5, 6, 1, 2});
  EXPECT_EQ(refusal("a,b\n1,2\n", {.width = 2, .header = Header::No}),
            "line 1, column 1: 'a' is not a number (a missing value is an empty cell or nan)");
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
  EXPECT_EQ(refusal("a,b,c,d\n1,2,3,4\n", 3, names), "header: has columns that the model lacks: 'd'");
  EXPECT_EQ(refusal("a,b\n1,2\n", 3, names), "header: lacks features of the model: 'c'");
  EXPECT_EQ(refusal("a,b,a\n1,2,3\n", 3, names), "header: the file has two columns named 'a'");
  EXPECT_EQ(refusal("a,b\n1,2\n", 2, {"a", "a"}), "header: the model has two features named 'a'");
  EXPECT_EQ(refusal("p,q,r,s,t,u,v,a,b,c\n", 3, names),
            "header: has columns that the model lacks: 'p', 'q', 'r', 's', 't' and 2 more");
  EXPECT_EQ(refusal("x\n", 7, {"a", "b", "c", "d", "e", "f", "g"}),
            "header: lacks features of the model: 'a', 'b', 'c', 'd', 'e' and 2 more; has columns that the "
            "model lacks: 'x'");
}

TEST(CsvRows, NamesLineAndColumnOfABadCell) {
  EXPECT_EQ(refusal("a,b\n1,2\n3,x\n", 2),
            "line 3, column 2: 'x' is not a number (a missing value is an empty cell or nan)");
  EXPECT_EQ(refusal("\"a\nb\",c\n1,?\n", 2),
            "line 3, column 2: '?' is not a number (a missing value is an empty cell or nan)");
  EXPECT_EQ(refusal("1,2\n3\n", 2), "line 2: has 1 cells, the model has 2 features");
  EXPECT_EQ(refusal("1,2\n3,4,5\n", 2), "line 2: has more cells than the model's 2 features");
  EXPECT_EQ(refusal("1,2\n\n3,4\n", 2),
            "line 2: a blank line between rows (a missing value in a one-column file is \"\")");
  EXPECT_EQ(refusal("a,b\n1,\"2\n", 2), "line 2, column 2: a quoted cell never ends");
  EXPECT_EQ(refusal("a,b\n\"1\"2,3\n", 2), "line 2, column 1: text after the closing quote of a cell");
  EXPECT_NE(refusal("1,2\n3,4\r5,6\n", 2).find("line 2, column 2: '4\\r5' is not"), std::string::npos);
  EXPECT_EQ(refusal("1,2\n3,a\x1b[2J\n", 2),
            "line 2, column 2: 'a\\x1b[2J' is not a number (a missing value is an empty cell or nan)");
}

TEST(CsvRows, NamesBothWidths) {
  EXPECT_EQ(refusal("1,2,3\n", 2), "has 3 columns, the model has 2 features");
  EXPECT_EQ(refusal("1,2,3,4\n", 2), "has more than 2 columns, the model has 2 features");
  EXPECT_EQ(refusal("1\n", 2), "has 1 columns, the model has 2 features");
  EXPECT_EQ(refusal("a,b,c\n1,2,3\n", 2), "has 3 columns, the model has 2 features");
  EXPECT_EQ(refusal("1,2,3,4\n", 2, {"a", "b"}), "has more than 2 columns, the model has 2 features");
}

/// A line in a pipe may be endless.
TEST(CsvRows, ReadsNoMoreThanOneCellBeyondTheModelsFeatures) {
  const std::string commas(10'000'000, ',');
  for (const std::string& text : {commas, "1,2\n" + commas, "a,b\n" + commas, "\"a\",b" + commas}) {
    Source source = Source::from_text(text);
    auto reader = csv_reader(source, {2});
    std::vector<float> values;
    EXPECT_FALSE(reader && (*reader)->read(10, values).ok());
    EXPECT_GT(source.bytes_left().value(), 9'999'900u);
  }
  // Extra cells of a header are read for the error message, up to a limit.
  EXPECT_EQ(refusal("a,b" + commas, 2, {"a", "b"}), "has more than 65537 columns, the model has 2 features");
}

TEST(CsvRows, RefusesLongCells) {
  const std::string megabyte(1 << 20, '1'), megabyte_and_more(3 << 20, '1');
  EXPECT_EQ(refusal("1,2\n3," + megabyte_and_more, 2), "line 2, column 2: a cell of more than 1 MiB");
  EXPECT_EQ(refusal("1,\"" + megabyte_and_more, 2), "line 1, column 2: a cell of more than 1 MiB");
  EXPECT_EQ(refusal(std::string(3 << 20, ' '), 2), "line 1, column 1: a cell of more than 1 MiB");
  expect_values(rows_of("1,2\n3," + megabyte, 2), {1, 2, 3, kInf});
}

TEST(CsvRows, TakesQuotesInsideACellAsTheyAre) {
  EXPECT_EQ(refusal("1,2\n3,4\"\n", 2),
            "line 2, column 2: '4\"' is not a number (a missing value is an empty cell or nan)");
  expect_values(rows_of("a\"b,c\n1,2\n", 2, {"c", "a\"b"}), {2, 1});
  EXPECT_EQ(refusal("1,2\n\"3\"\r,4\n", 2), "line 2, column 1: text after the closing quote of a cell");
  expect_values(rows_of("1,2\r\n\"3\",\"4\" \r\n", 2), {1, 2, 3, 4});
  expect_values(rows_of("1,2\r\n3,\"4\"\r", 2), {1, 2, 3, 4});
}

TEST(CsvRows, RefusesOtherFormatsByName) {
  EXPECT_EQ(refusal("", 2), "is empty; expected an NPY array or CSV rows");
  EXPECT_EQ(refusal("\n\n", 2), "line 1: is blank; expected a header or a row");
  EXPECT_EQ(refusal("{\"learner\": 1}", 2), "is a JSON document; expected an NPY array or CSV rows in UTF-8");
  EXPECT_EQ(refusal("PK\x03\x04....", 2),
            "is a ZIP archive (.npz or .xlsx?); expected an NPY array or CSV rows in UTF-8");
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

// --- NPY -------------------------------------------------------------------------------------------------

template <class T>
void expect_type(std::string_view kind, const std::vector<T>& values, const std::vector<float>& expected) {
  expect_values(rows_of(npy2("<" + std::string(kind), bytes_of(values)), 2), expected);
  expect_values(rows_of(npy2(">" + std::string(kind), bytes_of(values, true)), 2), expected);
}

TEST(NpyRows, ReadsEveryRealType) {
  expect_type<std::int16_t>("i2", {1, -2, 32767, 0}, {1, -2, 32767, 0});
  expect_type<std::int32_t>("i4", {16777217, -16777219, 1, 0}, {16777216, -16777220, 1, 0});
  expect_type<std::int64_t>("i8", {INT64_MAX, INT64_MIN, 1, 0}, {0x1p63F, -0x1p63F, 1, 0});
  expect_type<std::uint16_t>("u2", {65535, 1, 2, 3}, {65535, 1, 2, 3});
  expect_type<std::uint32_t>("u4", {4294967295U, 1, 2, 3}, {0x1p32F, 1, 2, 3});
  expect_type<std::uint64_t>("u8", {UINT64_MAX, 1, 2, 3}, {0x1p64F, 1, 2, 3});
  expect_type<std::uint16_t>("f2", {0x3c00, 0x8001, 0x7c00, 0x7e00}, {1, -0x1p-24F, kInf, NAN});
  expect_type<float>("f4", {0.1F, -0.0F, -kInf, NAN}, {0.1F, -0.0F, -kInf, NAN});
  expect_type<double>("f8", {0.1, 1e50, -1e-60, NAN}, {0.1F, kInf, -0.0F, NAN});
  for (const char* order : {"|", "<", "="}) {
    expect_values(rows_of(npy2(std::string(order) + "b1", std::string("\0\1\2\0", 4)), 2), {0, 1, 1, 0});
    expect_values(rows_of(npy2(std::string(order) + "i1", "\x01\xff\x80\x7f"), 2), {1, -1, -128, 127});
    expect_values(rows_of(npy2(std::string(order) + "u1", "\x01\xff\x80\x7f"), 2), {1, 255, 128, 127});
  }
}

const std::string kNotExact =
    " is no float32 number, and rounded it could go another way in this model, which compares in float64; if "
    "rounding is meant, give the rows as a float32 .npy array";

/// Models that compare in float64 ask for exact numbers.
TEST(NpyRows, RefusesNumbersThatAreNoFloat32WhereAsked) {
  const RowForm exact{.width = 2, .exact = true};
  const auto outcome = [&](const std::string& text) { return refusal(text, exact); };
  EXPECT_EQ(outcome(npy2("<f8", bytes_of<double>({0.5, kInf, NAN, -0.0}))), "accepted 2 rows");
  EXPECT_EQ(outcome(npy2("<i8", bytes_of<std::int64_t>({1, 2, 16777216, 4}))), "accepted 2 rows");
  for (const auto& [odd, shown] :
       {std::pair{0.1, "0.1"}, {1e50, "1e+50"}, {-1e-60, "-1e-60"}, {16777217.0, "16777217"}})
    EXPECT_EQ(outcome(npy2("<f8", bytes_of<double>({1, 2, odd, 4}))),
              "value [1, 0]: " + std::string(shown) + kNotExact);
  const std::string odd_integers = bytes_of<std::int64_t>({1, 2, 3, INT64_MIN + 1});
  EXPECT_EQ(outcome(npy2("<i8", odd_integers)), "value [1, 1]: -9223372036854775807" + kNotExact);
  for (const std::int64_t odd : {INT64_MAX, INT64_MAX - 1, std::int64_t{-16777217}})
    EXPECT_EQ(outcome(npy2("<i8", bytes_of<std::int64_t>({1, INT64_MIN, odd, 1}))),
              "value [1, 0]: " + std::to_string(odd) + kNotExact);
  EXPECT_EQ(outcome(npy2("<u8", bytes_of<std::uint64_t>({1, 1ULL << 63U, UINT64_MAX, 1}))),
            "value [1, 0]: 18446744073709551615" + kNotExact);
  EXPECT_EQ(outcome(npy2("<i4", bytes_of<std::int32_t>({1, INT32_MIN, INT32_MAX, 1}))),
            "value [1, 0]: 2147483647" + kNotExact);
  EXPECT_EQ(outcome(npy2("<f8", bytes_of<double>({1, 0.1, 3, 4}), "(2, 2)", true)),
            "value [1, 0]: 0.1" + kNotExact);
  EXPECT_EQ(
      refusal(npy2("<f8", bytes_of<double>({0.1, 1, 0.2, 2})), {.width = 2, .exact = true, .missing = 0.1F}),
      "value [1, 0]: 0.2" + kNotExact);
}

TEST(CsvRows, RefusesNumbersThatAreNoFloat32WhereAsked) {
  const RowForm exact{.width = 2, .exact = true};
  const auto outcome = [&](const std::string& text) { return refusal(text, exact); };
  EXPECT_EQ(outcome("1,0.5\n16777216,-0\nnan,-inf\n,1e400\n3,-1e-400\n"), "accepted 5 rows");
  EXPECT_EQ(outcome("1,0.5000000000000000000000001\n"), "accepted 1 rows");  // 0.5 as a float64
  for (const char* odd : {"0.1", "1e50", "-1e-60", "16777217"}) {
    EXPECT_EQ(outcome("1,2\n3," + std::string(odd) + "\n"),
              "line 2, column 2: '" + std::string(odd) + "'" + kNotExact);
    EXPECT_EQ(outcome(std::string(odd) + ",2\n"), "line 1, column 1: '" + std::string(odd) + "'" + kNotExact);
  }
  EXPECT_EQ(refusal("0.1,1\n2,0.1\n0.2,2\n", {.width = 2, .exact = true, .missing = 0.1F}),
            "line 3, column 1: '0.2'" + kNotExact);
  expect_values(rows_of("0.1,1\n", 2), {0.1F, 1});
}

TEST(NpyRows, ReadsVersionsOrdersAndEmptyArrays) {
  const std::string data = bytes_of<float>({1, 2, 3, 4, 5, 6});
  const std::string dictionary = "{'shape': (2L, 3L), \"fortran_order\": False, 'descr': '<f4'}  ";
  for (const char major : {'\1', '\2', '\3'})
    expect_values(rows_of(npy(dictionary, data, major), 3), {1, 2, 3, 4, 5, 6});
  expect_values(rows_of(npy2("<f4", data, "(2, 3)", true), 3), {1, 3, 5, 2, 4, 6});
  const auto none = rows_of(npy2("<f4", "", "(0, 3)"), 3);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->count, 0U);
}

TEST(NpyRows, RefusesOtherShapesAndTypesByName) {
  EXPECT_EQ(refusal(npy2("<f4", "", "(6,)"), 3),
            "NPY header: shape (6,) has 1 dimensions, expected 2: (rows, features)");
  EXPECT_EQ(refusal(npy2("<f4", "", "()"), 3),
            "NPY header: shape () has 0 dimensions, expected 2: (rows, features)");
  EXPECT_EQ(refusal(npy2("<f4", "", "(1, 2, 3)"), 3),
            "NPY header: shape (1, 2, 3) has 3 dimensions, expected 2: (rows, features)");
  EXPECT_EQ(refusal(npy2("<f4", "", "(5, 0)"), 3), "NPY header: shape (5, 0) has no columns");
  for (const char* dtype : {"<c8", "|O", "<U3", "|S4", "|V8", "<M8[s]", "<f16", "<f1", "f", "", "|f4", "!f4"})
    EXPECT_NE(refusal(npy2(dtype, ""), 2).find("dtype '" + std::string(dtype) + "' is not supported"),
              std::string::npos)
        << dtype;
  EXPECT_NE(refusal(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 2)}", ""), 2)
                .find("structured dtype"),
            std::string::npos);
  EXPECT_EQ(refusal(npy2("<f4", bytes_of<float>({1, 2, 3, 4})), 3),
            "has 2 columns, the model has 3 features");
}

TEST(NpyRows, ComparesCountsWithTheFileBeforeItAllocates) {
  EXPECT_EQ(refusal(npy2("<f4", "123"), 2),
            "NPY data: the header's 2 x 2 values need 16 bytes, the file has 3");
  EXPECT_EQ(refusal(npy2("<f4", std::string(17, 'x')), 2),
            "NPY data: the header's 2 x 2 values need 16 bytes, the file has 17");
  EXPECT_NE(refusal(npy2("<f8", "1", "(1000000000000, 1000000)"), 1000000).find("the file has 1"),
            std::string::npos);
  EXPECT_NE(refusal(npy2("<f8", "1", "(4611686018427387904, 4)"), 2).find("overflows"), std::string::npos);
  EXPECT_NE(refusal(npy2("<f8", "1", "(99999999999999999999, 4)"), 2).find("beyond 64 bits"),
            std::string::npos);
}

TEST(NpyRows, ParsesTheHeaderStrictly) {
  EXPECT_EQ(refusal("\x93NUMPY\x04", 2), "NPY header: truncated: the file ends after 7 bytes");
  EXPECT_EQ(refusal(std::string("\x93NUMPY\x04\0abcd", 12), 2),
            "NPY header: version 4.0 is not supported; expected 1.0, 2.0 or 3.0");
  const char* const wrong[] = {
      "",
      "{",
      "[]",
      "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), 'more': 1}",
      "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 2)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 2)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} x",
      "{'descr': '<f4, 'fortran_order': False, 'shape': (2, 2)}",
      "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2, 2)}",
      "{'descr': __import__('os'), 'fortran_order': False, 'shape': (2, 2)}",
  };
  for (const char* text : wrong) EXPECT_FALSE(parse_npy_header(text).ok()) << text;
}

TEST(NpyRows, BoundsTheHeader) {
  std::string long_header(kNpyMagic);
  long_header += std::string("\x02\x00\x01\x00\x10\x00", 6);  // version 2: a header of 2^20 + 1 bytes
  EXPECT_EQ(refusal(long_header + std::string(2 << 20, ' '), 2),
            "NPY header: is 1048577 bytes long, more than 1048576");
  const auto shape = [](std::size_t dimensions) {
    std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    for (std::size_t i = 0; i < dimensions; ++i) text += "1, ";
    return parse_npy_header(text + ")}");
  };
  EXPECT_TRUE(shape(32).ok());
  ASSERT_FALSE(shape(33).ok());
  EXPECT_EQ(shape(33).error().message, "more than 32 dimensions");
}

/// The size of a pipe is not known before its end.
TEST(NpyRows, RefusesBytesBehindTheDataOfAPipe) {
  const std::string data = bytes_of<float>({1, 2, 3, 4});
  for (const auto& [content, expected] :
       {std::pair{npy2("<f4", data), "accepted"},
        {npy2("<f4", data + "x"), "NPY data: the header's 2 x 2 values need 16 bytes, the file has more"},
        {npy2("<f4", data.substr(1)),
         "NPY data: the header's 2 x 2 values need 16 bytes, the file has 15"}}) {
    std::array<int, 2> ends = {-1, -1};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ASSERT_EQ(::write(ends[1], content.data(), content.size()), static_cast<ssize_t>(content.size()));
    ::close(ends[1]);
    const auto rows = rows_of(Source::open("/proc/self/fd/" + std::to_string(ends[0])).value(), {2});
    EXPECT_EQ(rows ? "accepted" : rows.error().text(), expected);
    ::close(ends[0]);
  }
}

TEST(NpyRows, SurvivesEveryTruncationAndFlippedByte) {
  const std::string good = npy2("<f4", bytes_of<float>({1, 2, 3, 4, 5, 6}), "(2, 3)") + "";
  ASSERT_TRUE(rows_of(good, 3).ok());
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(rows_of(good.substr(0, size), 3).ok()) << size;
  for (std::size_t at = 0; at < good.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(static_cast<unsigned char>(bad[at]) ^ (1U << static_cast<unsigned>(bit)));
      const auto rows = rows_of(bad, 3);
      if (rows) {
        EXPECT_EQ(rows->values.size(), rows->count * rows->width);
      }
    }
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

// --- in blocks ---------------------------------------------------------------------------------------------

/// Reads all rows of a file in blocks of `most` rows; an error ends the text.
std::string in_blocks(const std::string& text, std::size_t most) {
  auto reader = RowReader::open(Source::from_text(text), {2, {"a", "b"}});
  if (!reader) return reader.error().text();
  std::string seen;
  Rows rows;
  do {
    const auto done = reader->next(most, rows);
    if (!done) return seen + done.error().text();
    EXPECT_LE(rows.count, most);
    EXPECT_EQ(rows.values.size(), rows.count * 2);
    for (const float value : rows.values) {
      append_number(seen, value);
      seen += ' ';
    }
  } while (rows.count != 0);
  return seen;
}

TEST(RowReader, GivesTheSameRowsInBlocksOfAnySize) {
  const std::string data = bytes_of<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  for (const std::size_t most : {1u, 2u, 3u, 4u, 5u, 6u, 100u}) {
    EXPECT_EQ(in_blocks("1,2\n3,4\n5,6\n7,8\n9,10\n", most), "1 2 3 4 5 6 7 8 9 10 ");
    EXPECT_EQ(in_blocks("b,a\n1,2\n3,4\n5,6\n\n", most), "2 1 4 3 6 5 ");
    EXPECT_EQ(in_blocks("a,b\n", most), "");
    EXPECT_EQ(in_blocks(npy2("<f4", data, "(5, 2)"), most), "1 2 3 4 5 6 7 8 9 10 ");
    EXPECT_EQ(in_blocks(npy2("<f4", data, "(5, 2)", true), most), "1 6 2 7 3 8 4 9 5 10 ");
    EXPECT_EQ(in_blocks(npy2("<f4", "", "(0, 2)"), most), "");
    EXPECT_EQ(in_blocks(npy2("<f4", "", "(0, 2)", true), most), "");
  }
}

TEST(RowReader, SaysWhatIsWrongWhenItComesToIt) {
  EXPECT_EQ(in_blocks("1,2\n3,4\n5\n", 1), "1 2 3 4 line 3: has 1 cells, the model has 2 features");
  EXPECT_EQ(in_blocks("1,2\n3,4\n\n5,6\n", 2).find("1 2 3 4 line 3: a blank line between rows"), 0U);
  EXPECT_EQ(in_blocks("1,2,3\n4\n", 1), "has 3 columns, the model has 2 features");
}

// --- missing values, predictions ---------------------------------------------------------------------------

TEST(MissingValues, CompareAsFloat32) {
  const auto marked = [](float missing) { return RowForm{.width = 2, .missing = missing}; };
  const std::string text = "0,-0\n-999,0.1\n";
  expect_values(rows_of(text, marked(0.0F)), {NAN, NAN, -999, 0.1F});
  expect_values(rows_of(text, marked(NAN)), {0, -0.0F, -999, 0.1F});
  expect_values(rows_of(text, marked(parse_float("0.1").value())), {0, -0.0F, -999, NAN});
  const std::string array = npy2("<f8", bytes_of<double>({0, -0.0, -999, 0.1}));
  expect_values(rows_of(array, marked(-0.0F)), {NAN, NAN, -999, 0.1F});
  expect_values(rows_of(array, marked(0.1F)), {0, -0.0F, -999, NAN});
}

class Predictions : public ::testing::Test, protected support::TemporaryFolder {
 protected:
  std::string written(const std::string& name, const PredictionForm& form,
                      const std::vector<PredictionValues>& batches) {
    auto writer = PredictionWriter::open(file(name), form);
    EXPECT_TRUE(writer.ok());
    for (const auto& batch : batches) EXPECT_TRUE(writer->write(batch).ok());
    EXPECT_TRUE(writer->finish().ok());
    return support::content_of(file(name));
  }
};

/// The header contains the number of rows and cannot be rewritten in a pipe.
TEST_F(Predictions, WritesNpyToAPipe) {
  std::array<int, 2> ends = {-1, -1};
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(ends[1]), file("pipe.npy"));
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::span<const float> all(values);
  {
    auto writer = PredictionWriter::open(file("pipe.npy"), {1, PredictionForm::Type::Float32});
    ASSERT_TRUE(writer.ok());
    EXPECT_TRUE(writer->write(all.first(4)).ok());
    EXPECT_TRUE(writer->write(all.subspan(4)).ok());
    EXPECT_TRUE(writer->finish().ok());
  }
  ::close(ends[1]);
  std::string found(1000, '\0');
  const ssize_t got = ::read(ends[0], found.data(), found.size());
  ::close(ends[0]);
  found.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  EXPECT_EQ(found, npy_header("<f4", {6}) + bytes_of(values));
}

TEST_F(Predictions, WritesTheShortestText) {
  const std::vector<float> values = {0.1F, -0.0F, 1e20F, kInf, -std::numeric_limits<float>::quiet_NaN(), 3};
  const std::span<const float> all(values);
  using Type = PredictionForm::Type;
  EXPECT_EQ(written("a.csv", {1, Type::Float32, {}}, {all.first(2), all.subspan(2)}),
            "0.1\n-0\n1e+20\ninf\nnan\n3\n");
  EXPECT_EQ(written("b", {2, Type::Float32, {}}, {all}), "0.1,-0\n1e+20,inf\nnan,3\n");
  std::string repeated;
  for (int i = 0; i < 20'000; ++i) repeated += "0.1,-0\n";
  std::vector<float> many;
  for (int i = 0; i < 20'000; ++i) many.insert(many.end(), {0.1F, -0.0F});
  EXPECT_EQ(written("many.csv", {2, Type::Float32, {}}, {many, all.first(2)}), repeated + "0.1,-0\n");
  const std::vector<double> doubles = {0.1, 1.0 / 3};
  EXPECT_EQ(written("c.csv", {1, Type::Float64, {}}, {doubles}), "0.1\n0.3333333333333333\n");
}

TEST_F(Predictions, WritesLabels) {
  const std::vector<std::int64_t> classes = {1, 0, 2};
  const std::vector<std::string> labels = {"a,b", "say \"x\""};
  using Type = PredictionForm::Type;
  EXPECT_EQ(written("a.csv", {1, Type::Int64, labels}, {classes}), "\"say \"\"x\"\"\"\n\"a,b\"\n2\n");
  // Readers strip spaces around unquoted cells.
  const std::vector<std::string> spaced = {" a", "a b", "a\t"};
  EXPECT_EQ(written("b.csv", {1, Type::Int64, spaced}, {classes}), "a b\n\" a\"\n\"a\t\"\n");
  EXPECT_EQ(written("a.npy", {1, Type::Int64, labels}, {classes}).substr(128), bytes_of(classes));
}

TEST_F(Predictions, WritesWhatNumpySaves) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::string one = written("a.npy", {1, PredictionForm::Type::Float32, {}}, {values});
  const std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }";
  EXPECT_EQ(one.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(one.substr(10, 118), dictionary + std::string(117 - dictionary.size(), ' ') + "\n");
  EXPECT_EQ(one.substr(128), bytes_of(values));
  const std::string two = written("b.npy", {3, PredictionForm::Type::Float32, {}}, {values});
  EXPECT_NE(two.find("'shape': (2, 3), }"), std::string::npos);
  constexpr std::size_t kLargest = std::numeric_limits<std::size_t>::max();
  for (const std::vector<std::size_t>& shape :
       {std::vector<std::size_t>{0}, {kLargest}, {kLargest, 10'000'000}})
    EXPECT_EQ(npy_header("<f4", shape).size(), 128u);
  expect_values(rows_of(two, 3), values);
}

TEST_F(Predictions, AreWrittenAsTheEndingSays) {
  const std::vector<float> values = {1, 2};
  const PredictionForm form{1, PredictionForm::Type::Float32};
  EXPECT_EQ(written("a.NPY", form, {values}).substr(0, 6), kNpyMagic);
  for (const char* name : {"a.csv", "a.Csv", "a", ".hidden", "dir.npy/a"}) {
    EXPECT_TRUE(check_predictions_name(name).ok()) << name;
  }
  EXPECT_TRUE(check_predictions_name("-").ok());
  for (const auto& [name, ending] :
       {std::pair{"a.txt", "txt"}, {"a.csv.gz", "gz"}, {"b.d/a.Parquet", "parquet"}}) {
    const auto checked = check_predictions_name(name);
    ASSERT_FALSE(checked.ok()) << name;
    EXPECT_EQ(checked.error().code, ErrorCode::Usage);
    EXPECT_EQ(checked.error().text(),
              "-o '" + std::string(name) + "': predictions are written as .csv or .npy, not as ." + ending);
  }
}

TEST_F(Predictions, LeavesNothingBehindUnlessFinished) {
  const std::string out = write("out.csv", "before");
  {
    auto writer = PredictionWriter::open(out, {1, PredictionForm::Type::Float32, {}});
    ASSERT_TRUE(writer.ok());
    const std::vector<float> values = {1};
    EXPECT_TRUE(writer->write(std::span<const float>(values)).ok());
  }
  EXPECT_EQ(support::content_of(out), "before");
  const auto files = std::filesystem::directory_iterator(path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(Predictions, KeepsLinksAndModes) {
  namespace fs = std::filesystem;
  write("real.csv", "before");
  fs::permissions(file("real.csv"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real.csv", file("link.csv"));
  const std::vector<float> values = {1};
  EXPECT_EQ(written("link.csv", {1, PredictionForm::Type::Float32, {}}, {values}), "1\n");
  EXPECT_TRUE(fs::is_symlink(file("link.csv")));
  EXPECT_EQ(support::content_of(file("real.csv")), "1\n");
  EXPECT_EQ(fs::status(file("real.csv")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

/// The set-user-ID bit was given to the earlier file, not to what is written now.
TEST_F(Predictions, DoNotKeepSpecialBitsOfModes) {
  namespace fs = std::filesystem;
  const fs::path path = file("a.csv");
  const fs::perms rights = fs::perms::owner_all | fs::perms::group_exec;
  for (const fs::perms special : {fs::perms::set_uid, fs::perms::set_gid, fs::perms::sticky_bit}) {
    write("a.csv", "before");
    fs::permissions(path, rights | special);
    ASSERT_EQ(fs::status(path).permissions(), rights | special);
    written("a.csv", {1, PredictionForm::Type::Float32, {}}, {std::vector<float>{1}});
    EXPECT_EQ(fs::status(path).permissions(), rights);
  }
}

TEST_F(Predictions, ReportsAFullDisk) {
  auto writer = PredictionWriter::open("/dev/full", {1, PredictionForm::Type::Float32, {}});
  ASSERT_TRUE(writer.ok());
  const std::vector<float> values = {1};
  EXPECT_TRUE(writer->write(std::span<const float>(values)).ok());
  const auto done = writer->finish();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Environment);
  EXPECT_EQ(done.error().text(), "/dev/full: cannot write: No space left on device");
}

TEST(Quoted, ShowsTextSafelyAndShortly) {
  EXPECT_EQ(in_quotes("a\nb\x7f"), "'a\\nb\\x7f'");
  EXPECT_EQ(in_quotes("aaaaé", 5), "'aaaa…'");
  const std::vector<std::string> names = {"a", "b"};
  EXPECT_EQ(quoted_list(names, 2), "'a', 'b'");
  EXPECT_EQ(quoted_list(names, 3), "'a', 'b' and 1 more");
}

}  // namespace
}  // namespace forestvm::cli
