// Encoded rows through the C ABI: what is made of them, what the host backend predicts, and the mistakes that
// a caller can make.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "vm/small_program.hpp"
#include "vm/sparse_rows.hpp"
#include "support/allocations.hpp"

namespace forestvm::test {
namespace {

using support::allocations_of;

constexpr const char* kCoded =
    "plan(3); layout(tree, array); plan(BATCH); tile(batch, b0, b1, 8); parallel(b0); encode(u8)";

Program coded_program() { return compiled(small_forest(), kCoded); }

std::vector<std::uint8_t> room_for(const Opened& opened, std::size_t rows) {
  std::size_t bytes = 77;
  EXPECT_EQ(fvm_encoded_size(opened.program(), rows, &bytes), FVM_OK) << fvm_last_error();
  return std::vector<std::uint8_t>(bytes, std::uint8_t{0xee});
}

std::vector<std::uint32_t> scores(fvm_context* context, const fvm_coded_rows& rows, fvm_output output) {
  std::vector<float> out(rows.row_count * 3);
  std::vector<double> wide(out.size());
  EXPECT_EQ(fvm_predict_coded(context, &rows, output, out.data(), out.size()), FVM_OK) << fvm_last_error();
  EXPECT_EQ(fvm_predict_wide_coded(context, &rows, output, wide.data(), wide.size()), FVM_OK)
      << fvm_last_error();
  EXPECT_EQ(std::vector<float>(wide.begin(), wide.end()), out);
  std::vector<std::uint32_t> bits(out.size());
  std::memcpy(bits.data(), out.data(), out.size() * sizeof(float));
  return bits;
}

Answers answers_of(const Opened& opened, const fvm_coded_rows& rows) {
  Answers found;
  found.raw = scores(opened.context(), rows, FVM_OUTPUT_RAW);
  found.value = scores(opened.context(), rows, FVM_OUTPUT_VALUE);
  found.labels.resize(rows.row_count);
  found.leaves.resize(rows.row_count * 6);
  EXPECT_EQ(fvm_predict_class_coded(opened.context(), &rows, found.labels.data(), found.labels.size()),
            FVM_OK);
  EXPECT_EQ(fvm_predict_leaf_coded(opened.context(), &rows, found.leaves.data(), found.leaves.size()),
            FVM_OK);
  return found;
}

TEST(CApiCoded, PredictsWhatTheBackendPredicts) {
  const Program program = coded_program();
  const auto predictor = host_backend(program);
  const Opened opened(program), again(program);
  for (const std::size_t count : {1u, 2u, 63u, 64u, 65u, 200u}) {
    const SparseRows sparse = sparse_rows(count, 3, 50);
    const std::vector<double> wide(sparse.dense.begin(), sparse.dense.end());
    const fvm_csr_rows csr = c_rows(sparse);
    const Answers expected = answers(**predictor, sparse.block());
    std::vector<std::uint8_t> codes = room_for(opened, count);
    for (int kind = 0; kind < 3; ++kind) {
      fvm_coded_rows coded = FVM_CODED_ROWS_INIT;
      const fvm_status status =
          kind == 0 ? fvm_encode_f32(opened.context(), sparse.dense.data(), count, 3, codes.data(),
                                     codes.size(), &coded)
          : kind == 1
              ? fvm_encode_f64(opened.context(), wide.data(), count, 3, codes.data(), codes.size(), &coded)
              : fvm_encode_csr(opened.context(), &csr, codes.data(), codes.size(), &coded);
      ASSERT_EQ(status, FVM_OK) << fvm_last_error();
      EXPECT_EQ(coded.size, sizeof coded);
      EXPECT_EQ(coded.row_count, count);
      EXPECT_EQ(coded.column_count, program.section_Columns().size());
      EXPECT_EQ(coded.byte_count, codes.size());
      EXPECT_EQ(answers_of(again, coded), expected) << count << " rows, kind " << kind;
    }
  }
}

TEST(CApiCoded, TakesRowsFromAnyBlockOn) {
  const Opened opened(coded_program());
  const std::vector<float> rows = small_rows(200, 3);
  std::vector<std::uint8_t> codes = room_for(opened, 200);
  fvm_coded_rows all = FVM_CODED_ROWS_INIT;
  ASSERT_EQ(fvm_encode_f32(opened.context(), rows.data(), 200, 3, codes.data(), codes.size(), &all), FVM_OK);
  fvm_coded_rows last = all;
  last.codes += 2 * 64 * all.column_count;
  last.byte_count -= 2 * 64 * all.column_count;
  last.row_count = 200 - 128;
  const std::vector<std::uint32_t> raw = scores(opened.context(), all, FVM_OUTPUT_RAW);
  EXPECT_EQ(scores(opened.context(), last, FVM_OUTPUT_RAW),
            std::vector<std::uint32_t>(raw.begin() + 128 * 3, raw.end()));
}

TEST(CApiCoded, TakesNoRows) {
  const Opened opened(coded_program());
  fvm_coded_rows none = FVM_CODED_ROWS_INIT;
  EXPECT_EQ(fvm_predict_coded(opened.context(), &none, FVM_OUTPUT_RAW, nullptr, 0), FVM_OK);
  EXPECT_EQ(fvm_encode_f32(opened.context(), nullptr, 0, 0, nullptr, 0, &none), FVM_OK) << fvm_last_error();
  EXPECT_EQ(none.row_count, 0u);
}

TEST(CApiCoded, AllocatesNothingAfterTheFirstCall) {
  const std::vector<float> rows = small_rows(100, 3);
  const Opened opened(coded_program());
  std::vector<std::uint8_t> codes = room_for(opened, 100);
  std::vector<float> out(300);
  const auto call = [&] {
    fvm_coded_rows coded = FVM_CODED_ROWS_INIT;
    EXPECT_EQ(fvm_encode_f32(opened.context(), rows.data(), 100, 3, codes.data(), codes.size(), &coded),
              FVM_OK);
    EXPECT_EQ(fvm_predict_coded(opened.context(), &coded, FVM_OUTPUT_VALUE, out.data(), 300), FVM_OK);
  };
  call();
  EXPECT_EQ(allocations_of(call), 0u);
}

TEST(CApiCoded, RefusesRowsThatMakeNoSense) {
  const Opened opened(coded_program());
  const std::vector<float> rows = small_rows(10, 3);
  std::vector<std::uint8_t> codes = room_for(opened, 10);
  fvm_coded_rows coded = FVM_CODED_ROWS_INIT;
  ASSERT_EQ(fvm_encode_f32(opened.context(), rows.data(), 10, 3, codes.data(), codes.size(), &coded), FVM_OK);
  std::vector<float> out(30);
  using Rows = fvm_coded_rows;
  const auto predict = [&](const std::function<void(Rows&)>& change) {
    Rows changed = coded;
    change(changed);
    return fvm_predict_coded(opened.context(), &changed, FVM_OUTPUT_RAW, out.data(), out.size());
  };
  EXPECT_EQ(predict([](Rows&) {}), FVM_OK);
  expect_usage(predict([](Rows& r) { r.size = 0; }),
               "fvm_predict_coded: rows.size is 0, not sizeof(fvm_coded_rows)");
  expect_usage(predict([](Rows& r) { r.row_count = 11; }), "11 rows of 3 do not fit");
  expect_usage(predict([](Rows& r) { r.codes = nullptr; }), "no buffer for rows");
  EXPECT_EQ(predict([](Rows& r) { r.encoder ^= 1; }), FVM_REFUSED);
  EXPECT_NE(std::string(fvm_last_error()).find("encoded for another program: its encoder is "),
            std::string::npos);
  expect_usage(predict([](Rows& r) { ++r.column_count; }), "columns for a program of ");
  expect_usage(predict([](Rows& r) { --r.byte_count; }), "bytes, given are ");
}

TEST(CApiCoded, RefusesCallsThatMakeNoSense) {
  const Opened opened(coded_program()), other(rich_program());
  fvm_context* const context = opened.context();
  const std::vector<float> rows = small_rows(10, 3);
  std::vector<std::uint8_t> codes = room_for(opened, 10);
  std::uint8_t* const to = codes.data();
  const std::size_t room = codes.size();
  fvm_coded_rows coded = FVM_CODED_ROWS_INIT;
  expect_usage(fvm_encode_f32(nullptr, rows.data(), 10, 3, to, room, &coded), "the context is null");
  expect_usage(fvm_encode_f32(context, nullptr, 10, 3, to, room, &coded), "no buffer for rows");
  expect_usage(fvm_encode_f32(context, rows.data(), 10, 2, to, room, &coded), "rows of 2 values");
  expect_usage(fvm_encode_f32(context, rows.data(), 10, 3, nullptr, room, &coded), "the output is null");
  expect_usage(fvm_encode_f32(context, rows.data(), 10, 3, to, room, nullptr), "nowhere to put the encoded");
  expect_usage(fvm_encode_f32(context, rows.data(), 10, 3, to, room - 1, &coded), "bytes of codes; 10 rows");
  expect_usage(fvm_encode_f32(context, rows.data(), SIZE_MAX, 3, to, room, &coded), "bytes of codes");
  expect_usage(fvm_encode_csr(context, nullptr, to, room, &coded), "the rows are null");
  std::size_t bytes = 0;
  expect_usage(fvm_encoded_size(nullptr, 1, &bytes), "the program is null");
  expect_usage(fvm_encoded_size(opened.program(), 1, nullptr), "nowhere to put the size");
  expect_usage(fvm_encoded_size(opened.program(), SIZE_MAX, &bytes), "more than memory holds");
  EXPECT_EQ(fvm_encode_f32(other.context(), rows.data(), 10, 3, to, room, &coded), FVM_REFUSED);
  EXPECT_NE(std::string(fvm_last_error()).find("the program has no encoder"), std::string::npos);
  float out[30];
  expect_usage(fvm_predict_coded(context, nullptr, FVM_OUTPUT_RAW, out, 30), "the rows are null");
  EXPECT_EQ(fvm_predict_coded(other.context(), &coded, FVM_OUTPUT_RAW, out, 30), FVM_REFUSED);
}

}  // namespace
}  // namespace forestvm::test
