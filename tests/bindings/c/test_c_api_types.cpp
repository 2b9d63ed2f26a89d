// Values without an equal float32 through the C ABI: models that compare in float32 use the nearest float32;
// models that compare in float64 refuse them and say where they are.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "vm/derived_model.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_c_api_types {
namespace {

Program program_of(ScalarType type, const std::string& schedule) {
  Model model = small_forest();
  model.row_type = model.score_type = type;
  return compiled(model, schedule);
}

const std::string kRefused =
    " is not a float64 number, and rounded it could go another way in this model, which compares in float64; if "
    "rounding is meant, pass the rows as float64";

/// Puts the value in the last of five rows: row-major, column-major and sparse.
template <class Value>
void expect_inexact(fvm_type type, Value value, float nearest, const std::string& text) {
  SCOPED_TRACE(text);
  std::vector<Value> rows(15, Value{1});
  rows[3 * 4 + 1] = value;
  std::vector<Value> columns(15, Value{1});
  columns[5 * 1 + 4] = value;
  std::vector<float> rounded(15, 1.0f);
  rounded[3 * 4 + 1] = nearest;
  const std::vector<std::int64_t> offsets = {0, 3, 6, 9, 12, 15};
  const std::vector<std::int32_t> order = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
  const fvm_rows kinds[] = {FVM_DENSE_ROWS(rows.data(), type, 5, 3),
                            FVM_COLUMN_MAJOR_ROWS(columns.data(), type, 5, 3),
                            FVM_CSR_ROWS(offsets.data(), order.data(), rows.data(), type, 5, 15)};
  const std::string where = "row 4, column 1: " + text + kRefused;
  for (const char* const schedule : {"", "encode(u8)"}) {
    const Opened exact(program_of(ScalarType::Float64, schedule));
    const Opened rounding(program_of(ScalarType::Float32, schedule));
    const fvm_rows float_rows = FVM_DENSE_ROWS(rounded.data(), FVM_TYPE_FLOAT32, 5, 3);
    std::vector<float> out(15);
    for (fvm_rows kind : kinds) {
      EXPECT_EQ(c_answers(rounding.open(), rounding.context(), kind),
                c_answers(rounding.open(), rounding.context(), float_rows));
      expect_failure(predict(exact.context(), kind, FVM_OUTPUT_RAW, out), FVM_REFUSED,
                     "fvm_predict: " + where);
      --kind.row_count;  // without the row that has the value
      if (kind.kind != FVM_ROWS_CSR) kind.row_stride = kind.row_stride == 0 ? 3 : kind.row_stride;
      EXPECT_EQ(predict(exact.context(), kind, FVM_OUTPUT_RAW, out), FVM_OK) << fvm_last_error();
    }
    if (*schedule == '\0') continue;
    std::vector<std::uint8_t> codes(10000);
    fvm_rows encoded = FVM_ROWS_INIT;
    for (const fvm_rows& kind : kinds)
      expect_failure(fvm_encode(exact.context(), &kind, codes.data(), codes.size(), &encoded), FVM_REFUSED,
                     "fvm_encode: " + where);
  }
}

TEST(CApiTypes, IntegersThatNoFloat64IsEqualTo) {
  expect_inexact<std::int64_t>(FVM_TYPE_INT64, INT64_MIN + 1, -0x1p63f, "-9223372036854775807");
  expect_inexact<std::int64_t>(FVM_TYPE_INT64, INT64_MAX, 0x1p63f, "9223372036854775807");
  expect_inexact<std::int64_t>(FVM_TYPE_INT64, 9007199254740993, 0x1p53f, "9007199254740993");
  expect_inexact<std::uint64_t>(FVM_TYPE_UINT64, UINT64_MAX, 0x1p64f, "18446744073709551615");
}

/// Rows of 600 int64 values are converted 4096 at a time.
TEST(CApiTypes, SaysWhichRowOfALaterPassItIs) {
  constexpr std::size_t kRows = 4200, kFeatures = 600;
  Model model = small_forest({.features = kFeatures});
  model.row_type = model.score_type = ScalarType::Float64;
  const Opened opened(compiled(model, ""));
  std::vector<std::int64_t> values(kRows * kFeatures, 5);
  values[4150 * kFeatures + 599] = INT64_MAX;
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> columns;
  for (std::size_t row = 0; row <= kRows; ++row)
    offsets.push_back(static_cast<std::int64_t>(row * kFeatures));
  for (std::size_t i = 0; i < values.size(); ++i) columns.push_back(static_cast<std::int32_t>(i % kFeatures));
  std::vector<float> out(kRows * 3);
  for (const fvm_rows& rows : {fvm_rows FVM_DENSE_ROWS(values.data(), FVM_TYPE_INT64, kRows, kFeatures),
                               fvm_rows FVM_CSR_ROWS(offsets.data(), columns.data(), values.data(),
                                                     FVM_TYPE_INT64, kRows, values.size())})
    expect_failure(predict(opened.context(), rows, FVM_OUTPUT_RAW, out), FVM_REFUSED,
                   "fvm_predict: row 4150, column 599: 9223372036854775807 is not a float64 number");
}

/// Values between rows and columns belong to no row and are not checked.
TEST(CApiTypes, PaddingIsNotRead) {
  const Opened exact(program_of(ScalarType::Float64, ""));
  std::vector<std::int64_t> values(5 * 4, 1);
  for (std::size_t row = 0; row < 5; ++row) values[4 * row + 3] = INT64_MAX;
  fvm_rows rows = FVM_DENSE_ROWS(values.data(), FVM_TYPE_INT64, 5, 3);
  rows.row_stride = 4;
  std::vector<float> out(15);
  EXPECT_EQ(predict(exact.context(), rows, FVM_OUTPUT_RAW, out), FVM_OK) << fvm_last_error();
  rows.row_stride = 3;
  expect_failure(predict(exact.context(), rows, FVM_OUTPUT_RAW, out), FVM_REFUSED,
                 "row 1, column 0: 9223372036854775807 is not a float64 number");
}

/// Features that are compared as text hold whole numbers, or the codes of their texts.
TEST(CApiTypes, CodesOfHashedFeatures) {
  const Model model = derived_model(12);
  const std::vector<double> numbers = derived_rows(12, 200), codes = hashed_rows(model, numbers);
  const Opened opened(compiled(model, "encode(u8)"));
  const fvm_rows as_numbers = FVM_DENSE_ROWS(numbers.data(), FVM_TYPE_FLOAT64, 200, 6);
  fvm_rows as_codes = FVM_DENSE_ROWS(codes.data(), FVM_TYPE_FLOAT64, 200, 6);
  as_codes.hashed = 1;
  EXPECT_EQ(c_answers(opened.open(), opened.context(), as_codes),
            c_answers(opened.open(), opened.context(), as_numbers));
  std::vector<float> out(200);
  as_codes.hashed = 2;
  expect_failure(predict(opened.context(), as_codes, FVM_OUTPUT_RAW, out), FVM_USAGE,
                 "rows.hashed is 2, not 0 or 1");
  const std::vector<float> floats(6);
  fvm_rows narrow = FVM_DENSE_ROWS(floats.data(), FVM_TYPE_FLOAT32, 1, 6);
  narrow.hashed = 1;
  expect_failure(predict(opened.context(), narrow, FVM_OUTPUT_RAW, out), FVM_USAGE,
                 "codes of categories are float64");
  const std::vector<std::int64_t> offsets = {0, 1};
  const std::vector<std::int32_t> columns = {1};
  const std::vector<double> wrong = {0.5};
  fvm_rows sparse = FVM_CSR_ROWS(offsets.data(), columns.data(), wrong.data(), FVM_TYPE_FLOAT64, 1, 1);
  sparse.absent = FVM_ABSENT_ZERO;
  expect_failure(predict(opened.context(), sparse, FVM_OUTPUT_RAW, out), FVM_REFUSED,
                 "row 0, column 1: 0.5 is not a category");
  sparse.hashed = 1;
  expect_failure(predict(opened.context(), sparse, FVM_OUTPUT_RAW, out), FVM_REFUSED,
                 "row 0, column 1: 0.5 is not a code of a category");
}

}  // namespace
}  // namespace forestvm::test::test_c_api_types
