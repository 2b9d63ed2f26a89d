// Sparse rows through the C ABI: the host backend's predictions, and the mistakes that a caller can make.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "vm/small_program.hpp"
#include "vm/sparse_rows.hpp"

namespace forestvm::test::test_c_api_csr {
namespace {

TEST(CApiCsr, PredictsWhatTheBackendPredicts) {
  for (const Program& program : rich_programs())
    for (const Absent absent : {Absent::Missing, Absent::Zero}) {
      const SparseRows rows = sparse_rows(100, 3, 50, absent);
      const Opened opened(program);
      EXPECT_EQ(c_answers(opened.open(), opened.context(), c_rows(rows)),
                answers(**host_backend(program), rows.block()));
    }
}

/// Programs with rank codes encode rows of few values without making them dense.
TEST(CApiCsr, TakesFewValuesOfOtherTypes) {
  const SparseRows rows = sparse_rows(100, 200, 1);
  const std::vector<double> wide(rows.values.begin(), rows.values.end());
  for (const char* const schedule : {"", "encode(u8)"}) {
    const Program program = compiled(small_forest({.features = 200}), schedule);
    const Opened opened(program);
    fvm_rows c = c_rows(rows);
    c.type = FVM_TYPE_FLOAT64;
    c.data = wide.data();
    EXPECT_EQ(c_answers(opened.open(), opened.context(), c), answers(**host_backend(program), rows.block()));
  }
}

TEST(CApiCsr, RefusesRowsThatMakeNoSense) {
  const Opened opened(rich_program());
  const SparseRows rows = sparse_rows(10, 3, 50);
  std::vector<float> out(30);
  const auto changed_call = [&](const std::function<void(fvm_rows&)>& change) {
    fvm_rows changed = c_rows(rows);
    change(changed);
    return predict(opened.context(), changed, FVM_OUTPUT_RAW, out);
  };
  using Rows = fvm_rows;
  EXPECT_EQ(changed_call([](Rows&) {}), FVM_OK);
  expect_usage(changed_call([](Rows& r) { r.size = 0; }),
               "fvm_predict: rows.size is 0, not sizeof(fvm_rows)");
  expect_usage(changed_call([](Rows& r) { r.size = 5000; }), "rows.size is 5000");
  expect_usage(changed_call([](Rows& r) { r.absent = 2; }), "rows.absent is 2, not FVM_ABSENT_MISSING");
  expect_usage(changed_call([](Rows& r) { r.row_count = 11; }), "11 rows of 3");
  expect_usage(changed_call([](Rows& r) { r.row_count = SIZE_MAX; }), "do not fit");
  expect_usage(changed_call([](Rows& r) { r.offsets = nullptr; }),
               "a pointer of the rows, or the output, is null");
  expect_usage(changed_call([](Rows& r) { r.columns = nullptr; }),
               "a pointer of the rows, or the output, is null");
  expect_usage(changed_call([](Rows& r) { r.data = nullptr; }),
               "a pointer of the rows, or the output, is null");
  expect_usage(changed_call([](Rows& r) { --r.value_count; }), "its values end at");
  const std::vector<std::int32_t> columns(rows.columns.size(), 3);
  expect_usage(changed_call([&](Rows& r) { r.columns = columns.data(); }),
               "column 3; the model has 3 features");
}

}  // namespace
}  // namespace forestvm::test::test_c_api_csr
