// Encoded rows through the C ABI: making them, the host backend's predictions, and the mistakes that a caller
// can make.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "vm/small_program.hpp"
#include "vm/sparse_rows.hpp"

namespace forestvm::test::test_c_api_coded {
namespace {

constexpr const char* kCoded =
    "plan(3); layout(tree, array); plan(BATCH); tile(batch, b0, b1, 8); parallel(b0); encode(u8)";

Program coded_program() { return compiled(small_forest(), kCoded); }

std::vector<std::uint8_t> room_for(const Opened& opened, std::size_t rows) {
  std::size_t bytes = 77;
  EXPECT_EQ(fvm_encoded_size(opened.program(), rows, &bytes), FVM_OK) << fvm_last_error();
  return std::vector<std::uint8_t>(bytes, std::uint8_t{0xee});
}

fvm_rows encoded(const Opened& opened, const fvm_rows& rows, std::vector<std::uint8_t>& codes) {
  fvm_rows out = FVM_ROWS_INIT;
  EXPECT_EQ(fvm_encode(opened.context(), &rows, codes.data(), codes.size(), &out), FVM_OK)
      << fvm_last_error();
  return out;
}

TEST(CApiCoded, PredictsWhatTheBackendPredicts) {
  const Program program = coded_program();
  const auto predictor = host_backend(program);
  const Opened opened(program), again(program);
  for (const std::size_t count : {1u, 2u, 63u, 64u, 65u, 200u}) {
    const SparseRows sparse = sparse_rows(count, 3, 50);
    const std::vector<double> wide(sparse.dense.begin(), sparse.dense.end());
    const Answers expected = answers(**predictor, sparse.block());
    std::vector<std::uint8_t> codes = room_for(opened, count);
    for (const fvm_rows& rows : {c_rows(sparse.block()), c_rows(sparse),
                                 fvm_rows FVM_DENSE_ROWS(wide.data(), FVM_TYPE_FLOAT64, count, 3)}) {
      const fvm_rows coded = encoded(opened, rows, codes);
      EXPECT_EQ(coded.size, sizeof coded);
      EXPECT_EQ(coded.kind, FVM_ROWS_ENCODED);
      EXPECT_EQ(coded.row_count, count);
      EXPECT_EQ(coded.column_count, program.columns().size());
      EXPECT_EQ(coded.byte_count, codes.size());
      EXPECT_EQ(c_answers(again.open(), again.context(), coded), expected)
          << count << " rows, kind " << rows.kind << ", type " << rows.type;
    }
  }
}

TEST(CApiCoded, WritesTheCallersStructAlone) {
  const Opened opened(coded_program());
  const std::vector<float> values = small_rows(10, 3);
  const fvm_rows rows = c_rows(RowBlock{values.data(), 10, 3});
  std::vector<std::uint8_t> codes = room_for(opened, 10);
  struct Later {
    fvm_rows known = FVM_ROWS_INIT;
    std::uint64_t more = 1, beyond = 2;
  } later;
  later.known.size = offsetof(Later, beyond);
  ASSERT_EQ(fvm_encode(opened.context(), &rows, codes.data(), codes.size(), &later.known), FVM_OK)
      << fvm_last_error();
  EXPECT_EQ(later.known.size, offsetof(Later, beyond));
  EXPECT_EQ(later.more, 0u) << "a field that this version does not know has its default";
  EXPECT_EQ(later.beyond, 2u);
  std::vector<float> out(30);
  EXPECT_EQ(predict(opened.context(), later.known, FVM_OUTPUT_RAW, out), FVM_OK) << fvm_last_error();
  for (const std::size_t size : {std::size_t{0}, sizeof(fvm_rows) - 1}) {
    fvm_rows unknown = FVM_ROWS_INIT;
    unknown.size = size;
    expect_usage(fvm_encode(opened.context(), &rows, codes.data(), codes.size(), &unknown),
                 "fvm_encode: encoded.size is " + std::to_string(size) + ", not sizeof(fvm_rows)");
  }
}

/// The struct that describes the rows may also receive the encoded rows.
TEST(CApiCoded, EncodesIntoTheStructOfTheRows) {
  const Opened opened(coded_program());
  const std::vector<float> values = small_rows(10, 3);
  fvm_rows rows = c_rows(RowBlock{values.data(), 10, 3});
  const Answers expected = c_answers(opened.open(), opened.context(), rows);
  std::vector<std::uint8_t> codes = room_for(opened, 10);
  ASSERT_EQ(fvm_encode(opened.context(), &rows, codes.data(), codes.size(), &rows), FVM_OK);
  EXPECT_EQ(c_answers(opened.open(), opened.context(), rows), expected);
}

TEST(CApiCoded, TakesRowsFromAnyBlockOn) {
  const Opened opened(coded_program());
  const std::vector<float> rows = small_rows(200, 3);
  std::vector<std::uint8_t> codes = room_for(opened, 200);
  const fvm_rows all = encoded(opened, c_rows(RowBlock{rows.data(), 200, 3}), codes);
  fvm_rows last = all;
  last.data = codes.data() + 2 * 64 * all.column_count;
  last.byte_count -= 2 * 64 * all.column_count;
  last.row_count = 200 - 128;
  const std::vector<float> raw = predicted<float>(opened.context(), all, FVM_OUTPUT_RAW, 3);
  EXPECT_EQ(predicted<float>(opened.context(), last, FVM_OUTPUT_RAW, 3),
            std::vector<float>(raw.begin() + 128 * 3, raw.end()));
}

TEST(CApiCoded, RefusesRowsThatMakeNoSense) {
  const Opened opened(coded_program());
  const std::vector<float> rows = small_rows(10, 3);
  std::vector<std::uint8_t> codes = room_for(opened, 10);
  const fvm_rows coded = encoded(opened, c_rows(RowBlock{rows.data(), 10, 3}), codes);
  std::vector<float> out(30);
  using Rows = fvm_rows;
  const auto changed_call = [&](const std::function<void(Rows&)>& change) {
    Rows changed = coded;
    change(changed);
    return predict(opened.context(), changed, FVM_OUTPUT_RAW, out);
  };
  EXPECT_EQ(changed_call([](Rows&) {}), FVM_OK);
  expect_usage(changed_call([](Rows& r) { r.size = 0; }),
               "fvm_predict: rows.size is 0, not sizeof(fvm_rows)");
  expect_usage(changed_call([](Rows& r) { r.row_count = 11; }), "11 rows of 3 do not fit");
  expect_usage(changed_call([](Rows& r) { r.data = nullptr; }),
               "a pointer of the rows, or the output, is null");
  EXPECT_EQ(changed_call([](Rows& r) { r.encoder ^= 1; }), FVM_REFUSED);
  EXPECT_NE(std::string(fvm_last_error()).find("encoded for another program: its encoder is "),
            std::string::npos);
  expect_usage(changed_call([](Rows& r) { ++r.column_count; }), "columns for a program of ");
  expect_usage(changed_call([](Rows& r) { --r.byte_count; }), "bytes, given are ");
}

TEST(CApiCoded, RefusesCallsThatMakeNoSense) {
  const Opened opened(coded_program()), other(rich_program());
  const std::vector<float> values = small_rows(10, 3);
  const fvm_rows rows = c_rows(RowBlock{values.data(), 10, 3});
  std::vector<std::uint8_t> codes = room_for(opened, 10);
  fvm_rows coded = FVM_ROWS_INIT;
  const auto encode = [&](fvm_context* context, const fvm_rows* given, std::uint8_t* to, std::size_t room) {
    return fvm_encode(context, given, to, room, &coded);
  };
  fvm_context* const context = opened.context();
  const std::size_t room = codes.size();
  fvm_rows wrong = rows;
  expect_usage(encode(nullptr, &rows, codes.data(), room), "fvm_encode: the context is null");
  expect_usage(encode(context, nullptr, codes.data(), room), "the rows are null");
  wrong.data = nullptr;
  expect_usage(encode(context, &wrong, codes.data(), room), "a pointer of the rows, or the output, is null");
  wrong = rows;
  wrong.row_stride = 2;
  expect_usage(encode(context, &wrong, codes.data(), room), "rows of 2 values");
  expect_usage(encode(context, &rows, nullptr, room), "the output is null");
  expect_usage(encode(context, &rows, codes.data(), room - 1), "bytes of codes; 10 rows");
  wrong = rows;
  wrong.row_count = SIZE_MAX;
  expect_usage(encode(context, &wrong, codes.data(), room), "bytes of codes");
  expect_usage(fvm_encode(context, &rows, codes.data(), room, nullptr), "the pointer to the encoded");
  std::size_t bytes = 0;
  expect_usage(fvm_encoded_size(nullptr, 1, &bytes), "the program is null");
  expect_usage(fvm_encoded_size(opened.program(), 1, nullptr), "the pointer to the size");
  expect_usage(fvm_encoded_size(opened.program(), SIZE_MAX, &bytes), "more than memory holds");
  expect_failure(encode(other.context(), &rows, codes.data(), room), FVM_REFUSED,
                 "the program has no encoder");
  ASSERT_EQ(encode(context, &rows, codes.data(), room), FVM_OK);
  expect_usage(fvm_encode(context, &coded, codes.data(), room, &wrong), "the rows are encoded already");
  std::vector<float> out(30);
  expect_failure(predict(other.context(), coded, FVM_OUTPUT_RAW, out), FVM_REFUSED,
                 "the program has no encoder");
}

}  // namespace
}  // namespace forestvm::test::test_c_api_coded
