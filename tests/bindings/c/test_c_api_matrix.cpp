// The C ABI: every kind of rows x type of value x output x type of result. Predictions equal, bit for bit,
// those of the C++ API for the same rows as float32.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "support/allocations.hpp"
#include "typed_rows.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_c_api_matrix {
namespace {

using support::allocations_of;

/// All outputs in all types that can hold them.
struct Everything {
  std::vector<std::uint32_t> raw, value;
  std::vector<std::uint64_t> wide_raw, wide_value;
  std::vector<std::int64_t> labels, wide_leaves;
  std::vector<std::int32_t> narrow_labels, leaves;
  bool operator==(const Everything&) const = default;
};

template <class Bits, class Number>
std::vector<Bits> bits_of(const std::vector<Number>& numbers) {
  std::vector<Bits> bits;
  for (const Number number : numbers) bits.push_back(std::bit_cast<Bits>(number));
  return bits;
}

/// Returns what the four methods of the C++ API answer.
Everything expected_of(const Predictor& predictor, const RowBlock& rows) {
  const auto context = predictor.make_context();
  const auto scores = [&](OutputKind output, auto number) {
    std::vector<decltype(number)> out(rows.count * output_width(predictor.program(), output));
    if constexpr (sizeof number == sizeof(double))
      EXPECT_TRUE(predictor.predict_wide(*context, rows, output, out.data()).ok());
    else
      EXPECT_TRUE(predictor.predict(*context, rows, output, out.data()).ok());
    return out;
  };
  Everything all;
  all.raw = bits_of<std::uint32_t>(scores(OutputKind::Raw, float()));
  all.value = bits_of<std::uint32_t>(scores(OutputKind::Value, float()));
  all.wide_raw = bits_of<std::uint64_t>(scores(OutputKind::Raw, double()));
  all.wide_value = bits_of<std::uint64_t>(scores(OutputKind::Value, double()));
  all.labels.resize(rows.count * output_width(predictor.program(), OutputKind::Class));
  EXPECT_TRUE(predictor.predict_class(*context, rows, all.labels.data()).ok());
  all.leaves.resize(rows.count * output_width(predictor.program(), OutputKind::Leaf));
  EXPECT_TRUE(predictor.predict_leaf(*context, rows, all.leaves.data()).ok());
  for (const std::int64_t label : all.labels) all.narrow_labels.push_back(static_cast<std::int32_t>(label));
  all.wide_leaves.assign(all.leaves.begin(), all.leaves.end());
  return all;
}

/// Returns what fvm_predict answers.
Everything everything(const Opened& opened, const fvm_rows& rows) {
  fvm_context* const context = opened.context();
  const auto width = [&](fvm_output output) { return width_of(opened.open(), output); };
  const std::size_t raw = width(FVM_OUTPUT_RAW), value = width(FVM_OUTPUT_VALUE),
                    label = width(FVM_OUTPUT_CLASS), leaf = width(FVM_OUTPUT_LEAF);
  Everything all;
  all.raw = bits_of<std::uint32_t>(predicted<float>(context, rows, FVM_OUTPUT_RAW, raw));
  all.value = bits_of<std::uint32_t>(predicted<float>(context, rows, FVM_OUTPUT_VALUE, value));
  all.wide_raw = bits_of<std::uint64_t>(predicted<double>(context, rows, FVM_OUTPUT_RAW, raw));
  all.wide_value = bits_of<std::uint64_t>(predicted<double>(context, rows, FVM_OUTPUT_VALUE, value));
  all.labels = predicted<std::int64_t>(context, rows, FVM_OUTPUT_CLASS, label);
  all.narrow_labels = predicted<std::int32_t>(context, rows, FVM_OUTPUT_CLASS, label);
  all.leaves = predicted<std::int32_t>(context, rows, FVM_OUTPUT_LEAF, leaf);
  all.wide_leaves = predicted<std::int64_t>(context, rows, FVM_OUTPUT_LEAF, leaf);
  return all;
}

void expect_matrix(const Program& program, const std::vector<std::size_t>& counts) {
  const auto predictor = host_backend(program);
  const Opened opened(program);
  const bool encodes = !program.columns().empty();
  for (fvm_type type = FVM_TYPE_FLOAT32; type <= FVM_TYPE_BOOL; ++type)
    for (const Storage storage : kStorages)
      for (const std::size_t count : counts) {
        SCOPED_TRACE("type " + std::to_string(type) + ", storage " +
                     std::to_string(static_cast<int>(storage)) + ", rows " + std::to_string(count));
        const StoredRows rows(type, storage, count, program.meta().num_features);
        const Everything expected = expected_of(**predictor, rows.as_floats());
        EXPECT_TRUE(everything(opened, rows.rows()) == expected);
        if (!encodes) continue;
        std::size_t bytes = 0;
        EXPECT_EQ(fvm_encoded_size(opened.program(), count, &bytes), FVM_OK);
        std::vector<std::uint8_t> codes(bytes);
        fvm_rows coded = FVM_ROWS_INIT;
        const fvm_status status = fvm_encode(opened.context(), &rows.rows(), codes.data(), bytes, &coded);
        if (status == FVM_REFUSED) continue;  // the program's walks read values
        EXPECT_EQ(status, FVM_OK) << fvm_last_error();
        EXPECT_TRUE(everything(opened, coded) == expected) << "encoded";
      }
}

TEST(CApiMatrix, IsThatOfTheCppApi) {
  for (const Program& program : rich_programs()) expect_matrix(program, {1, 7});
}

TEST(CApiMatrix, OfManyRowsAndFeatures) {
  for (const char* const schedule : {"", "encode(u8)", kRichSchedule})
    expect_matrix(compiled(small_forest({.features = 70}), schedule), {65, 130});
}

/// Rows of 600 float64 values are converted 4096 at a time.
TEST(CApiMatrix, OfCallsOfSeveralPasses) {
  Model model = small_forest({.features = 600});
  const Program program = compiled(model, "encode(u8)");
  const auto predictor = host_backend(program);
  const Opened opened(program);
  for (const Storage storage : {Storage::RowMajor, Storage::ColumnMajor, Storage::Sparse}) {
    const StoredRows rows(FVM_TYPE_FLOAT64, storage, 4096 + 9, 600);
    EXPECT_TRUE(everything(opened, rows.rows()) == expected_of(**predictor, rows.as_floats()));
  }
}

/// Rows that are converted need not be aligned.
TEST(CApiMatrix, OfRowsOfAnyAlignment) {
  const Program program = rich_program();
  const auto predictor = host_backend(program);
  const Opened opened(program);
  for (fvm_type type = FVM_TYPE_FLOAT64; type <= FVM_TYPE_BOOL; ++type)
    for (const Storage storage : kStorages) {
      const StoredRows rows(type, storage, 20, 3, 1);
      EXPECT_TRUE(everything(opened, rows.rows()) == expected_of(**predictor, rows.as_floats()));
    }
}

TEST(CApiMatrix, AllocatesNothingAfterTheFirstCall) {
  std::vector<float> scores(300);
  std::vector<double> wide(300);
  std::vector<std::int64_t> longs(600);
  std::vector<std::int32_t> ints(600);
  for (const Program& program : rich_programs()) {
    const OpenProgram opened = open_memory(program);
    OpenContext context;
    EXPECT_GT(allocations_of([&] { context = context_of(opened); }),
              0u);  // allocations of the library are counted
    const auto all_outputs = [&](fvm_rows rows, std::size_t count) {
      rows.row_count = count;
      for (const fvm_output output : {FVM_OUTPUT_RAW, FVM_OUTPUT_VALUE}) {
        EXPECT_EQ(predict(context.get(), rows, output, scores), FVM_OK) << fvm_last_error();
        EXPECT_EQ(predict(context.get(), rows, output, wide), FVM_OK) << fvm_last_error();
      }
      for (const fvm_output output : {FVM_OUTPUT_CLASS, FVM_OUTPUT_LEAF}) {
        EXPECT_EQ(predict(context.get(), rows, output, ints), FVM_OK) << fvm_last_error();
        EXPECT_EQ(predict(context.get(), rows, output, longs), FVM_OK) << fvm_last_error();
      }
    };
    for (const fvm_type type : {FVM_TYPE_FLOAT32, FVM_TYPE_FLOAT64, FVM_TYPE_UINT64})
      for (const Storage storage : kStorages) {
        const StoredRows rows(type, storage, 100, 3);
        all_outputs(rows.rows(), 100);
        for (const std::size_t count : {100u, 1u, 0u}) {
          if (storage == Storage::ColumnMajor && count != 100)
            continue;  // the matrix has another number of rows
          EXPECT_EQ(allocations_of([&] { all_outputs(rows.rows(), count); }), 0u)
              << "type " << type << ", storage " << static_cast<int>(storage) << ", " << count << " rows";
        }
      }
  }
}

TEST(CApiMatrix, AllocatesNothingForEncodedRowsAfterTheFirstCall) {
  const Opened opened(compiled(small_forest(), "encode(u8)"));
  std::size_t bytes = 0;
  ASSERT_EQ(fvm_encoded_size(opened.program(), 100, &bytes), FVM_OK);
  std::vector<std::uint8_t> codes(bytes);
  std::vector<float> out(300);
  std::vector<std::int32_t> labels(100);
  for (const Storage storage : kStorages) {
    const StoredRows rows(FVM_TYPE_FLOAT64, storage, 100, 3);
    const auto call = [&] {
      fvm_rows coded = FVM_ROWS_INIT;
      EXPECT_EQ(fvm_encode(opened.context(), &rows.rows(), codes.data(), bytes, &coded), FVM_OK);
      EXPECT_EQ(predict(opened.context(), coded, FVM_OUTPUT_VALUE, out), FVM_OK) << fvm_last_error();
      EXPECT_EQ(predict(opened.context(), coded, FVM_OUTPUT_CLASS, labels), FVM_OK) << fvm_last_error();
    };
    call();
    EXPECT_EQ(allocations_of(call), 0u);
  }
}

}  // namespace
}  // namespace forestvm::test::test_c_api_matrix
