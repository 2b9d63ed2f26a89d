// Sparse rows through the C ABI: what the host backend predicts, and the mistakes that a caller can make.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
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

std::vector<std::uint32_t> scores(fvm_context* context, const fvm_csr_rows& rows, fvm_output output) {
  std::vector<float> out(rows.row_count * 3);
  std::vector<double> wide(out.size());
  EXPECT_EQ(fvm_predict_csr(context, &rows, output, out.data(), out.size()), FVM_OK) << fvm_last_error();
  EXPECT_EQ(fvm_predict_wide_csr(context, &rows, output, wide.data(), wide.size()), FVM_OK)
      << fvm_last_error();
  EXPECT_EQ(std::vector<float>(wide.begin(), wide.end()), out);
  std::vector<std::uint32_t> bits(out.size());
  std::memcpy(bits.data(), out.data(), out.size() * sizeof(float));
  return bits;
}

TEST(CApiCsr, PredictsWhatTheBackendPredicts) {
  for (const Program& program : rich_programs())
    for (const Absent absent : {Absent::Missing, Absent::Zero}) {
      const SparseRows rows = sparse_rows(100, 3, 50, absent);
      const fvm_csr_rows c = c_rows(rows);
      const Opened opened(program);
      Answers found;
      found.raw = scores(opened.context(), c, FVM_OUTPUT_RAW);
      found.value = scores(opened.context(), c, FVM_OUTPUT_VALUE);
      found.labels.resize(100);
      found.leaves.resize(600);
      EXPECT_EQ(fvm_predict_class_csr(opened.context(), &c, found.labels.data(), 100), FVM_OK);
      EXPECT_EQ(fvm_predict_leaf_csr(opened.context(), &c, found.leaves.data(), 600), FVM_OK);
      EXPECT_EQ(found, answers(**host_backend(program), rows.block()));
    }
}

TEST(CApiCsr, AllocatesNothingAfterTheFirstCall) {
  const SparseRows rows = sparse_rows(100, 3, 50);
  const fvm_csr_rows c = c_rows(rows);
  for (const Program& program : rich_programs()) {
    const Opened opened(program);
    std::vector<float> out(300);
    const auto call = [&] {
      EXPECT_EQ(fvm_predict_csr(opened.context(), &c, FVM_OUTPUT_RAW, out.data(), 300), FVM_OK);
    };
    call();
    EXPECT_EQ(allocations_of(call), 0u);
  }
}

TEST(CApiCsr, RefusesRowsThatMakeNoSense) {
  const Opened opened(rich_program());
  const SparseRows rows = sparse_rows(10, 3, 50);
  std::vector<float> out(30);
  const auto predict = [&](const std::function<void(fvm_csr_rows&)>& change) {
    fvm_csr_rows changed = c_rows(rows);
    change(changed);
    return fvm_predict_csr(opened.context(), &changed, FVM_OUTPUT_RAW, out.data(), out.size());
  };
  using Rows = fvm_csr_rows;
  EXPECT_EQ(predict([](Rows&) {}), FVM_OK);
  EXPECT_EQ(predict([](Rows& r) { r = FVM_CSR_ROWS_INIT; }), FVM_OK);
  expect_usage(predict([](Rows& r) { r.size = 0; }),
               "fvm_predict_csr: rows.size is 0, not sizeof(fvm_csr_rows)");
  expect_usage(predict([](Rows& r) { r.size = 5000; }), "rows.size is 5000");
  expect_usage(predict([](Rows& r) { r.absent = 2; }), "rows.absent is 2, not FVM_ABSENT_MISSING");
  expect_usage(predict([](Rows& r) { r.row_count = 11; }), "11 rows of 3");
  expect_usage(predict([](Rows& r) { r.row_count = SIZE_MAX; }), "do not fit");
  expect_usage(predict([](Rows& r) { r.offsets = nullptr; }), "no buffer for rows");
  expect_usage(predict([](Rows& r) { r.columns = nullptr; }), "no buffer for rows");
  expect_usage(predict([](Rows& r) { r.values = nullptr; }), "no buffer for rows");
  expect_usage(predict([](Rows& r) { --r.value_count; }), "its values end at");
  const std::vector<std::int32_t> columns(rows.columns.size(), 3);
  expect_usage(predict([&](Rows& r) { r.columns = columns.data(); }), "column 3; the model has 3 features");
}

TEST(CApiCsr, RefusesCallsThatMakeNoSense) {
  const Opened opened(rich_program());
  fvm_context* const context = opened.context();
  const SparseRows sparse = sparse_rows(10, 3, 50);
  const fvm_csr_rows rows = c_rows(sparse);
  std::vector<float> out(30);
  std::vector<double> wide(30);
  std::vector<std::int64_t> labels(10);
  std::vector<std::int32_t> leaves(60);
  expect_usage(fvm_predict_csr(nullptr, &rows, FVM_OUTPUT_RAW, out.data(), 30), "the context is null");
  expect_usage(fvm_predict_csr(context, nullptr, FVM_OUTPUT_RAW, out.data(), 30), "the rows are null");
  expect_usage(fvm_predict_csr(context, &rows, FVM_OUTPUT_LEAF, out.data(), 30), "output is 3");
  expect_usage(fvm_predict_csr(context, &rows, FVM_OUTPUT_RAW, out.data(), 29), "room for 29 numbers");
  expect_usage(fvm_predict_csr(context, &rows, FVM_OUTPUT_RAW, nullptr, 30), "the output is null");
  expect_usage(fvm_predict_wide_csr(context, &rows, FVM_OUTPUT_RAW, wide.data(), 29), "room for 29 numbers");
  expect_usage(fvm_predict_class_csr(context, &rows, labels.data(), 9), "room for 9 numbers");
  expect_usage(fvm_predict_leaf_csr(context, &rows, leaves.data(), 59), "room for 59 numbers");
  expect_usage(fvm_predict_leaf_csr(context, nullptr, leaves.data(), 60), "the rows are null");
}

TEST(CApiCsr, TakesRowsOfALaterVersionWhereTheyAreZero) {
  const Opened opened(rich_program());
  const SparseRows rows = sparse_rows(10, 3, 50);
  struct Later {
    fvm_csr_rows known;
    std::uint64_t more;
  } later{c_rows(rows), 0};
  later.known.size = sizeof later;
  std::vector<float> out(30);
  const auto predict = [&] {
    return fvm_predict_csr(opened.context(), &later.known, FVM_OUTPUT_RAW, out.data(), 30);
  };
  EXPECT_EQ(predict(), FVM_OK) << fvm_last_error();
  later.more = 1;
  expect_usage(predict(), "a field that this version of the library does not have");
}

}  // namespace
}  // namespace forestvm::test
