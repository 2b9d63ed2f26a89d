// The reader of NPY files: types, orders, headers, accepted and refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/io/csv.hpp"
#include "cli/io/npy.hpp"
#include "read_rows.hpp"

namespace forestvm::cli::test_npy_rows {
namespace {

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

TEST(NpyRows, ReadsFloat64WhereModelsCompareIt) {
  const RowForm wide{.width = 2, .wide = true};
  const std::vector<double> odd = {0.1, 1e50, -1e-60, 16777217};
  expect_wide_values(rows_of(npy2("<f8", bytes_of(odd)), wide), odd);
  expect_wide_values(rows_of(npy2("<f8", bytes_of(odd), "(2, 2)", true), wide),
                     {0.1, -1e-60, 1e50, 16777217});
  expect_wide_values(rows_of(npy2("<i8", bytes_of<std::int64_t>({1, -2, 1LL << 53, INT64_MIN})), wide),
                     {1, -2, 0x1p53, -0x1p63});
  expect_wide_values(rows_of(npy2("<i4", bytes_of<std::int32_t>({1, -2, 3, INT32_MAX})), wide),
                     {1, -2, 3, 2147483647});
  // Narrower types need no more than float32.
  expect_values(rows_of(npy2("<f4", bytes_of<float>({0.1F, 2, 3, 4})), wide), {0.1F, 2, 3, 4});
  const RowForm marked{.width = 2, .wide = true, .missing = parse_missing("0.1")};
  expect_wide_values(rows_of(npy2("<f8", bytes_of(odd)), marked), {NAN, 1e50, -1e-60, 16777217});
}

TEST(NpyRows, RefusesIntegersThatAreNoFloat64WhereModelsCompareIt) {
  const RowForm wide{.width = 2, .wide = true};
  const auto outcome = [&](const std::string& text) { return refusal(text, wide); };
  const std::string odd_integers = bytes_of<std::int64_t>({1, 2, 3, INT64_MIN + 1});
  EXPECT_EQ(outcome(npy2("<i8", odd_integers)), "value [1, 1]: -9223372036854775807" + kNotExact);
  EXPECT_EQ(outcome(npy2("<i8", odd_integers, "(2, 2)", true)),
            "value [1, 1]: -9223372036854775807" + kNotExact);
  for (const std::int64_t odd : {INT64_MAX, INT64_MAX - 1, std::int64_t{-9007199254740993}})
    EXPECT_EQ(outcome(npy2("<i8", bytes_of<std::int64_t>({1, INT64_MIN, odd, 1}))),
              "value [1, 0]: " + std::to_string(odd) + kNotExact);
  EXPECT_EQ(outcome(npy2("<u8", bytes_of<std::uint64_t>({1, 1ULL << 63U, UINT64_MAX, 1}))),
            "value [1, 0]: 18446744073709551615" + kNotExact);
  EXPECT_EQ(outcome(npy2("<f8", bytes_of<double>({0.5, 0.1, NAN, -0.0}))), "accepted 2 rows");
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
            "NPY header: shape (6,) has 1 dimension, expected 2: (rows, features)");
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

}  // namespace
}  // namespace forestvm::cli::test_npy_rows
