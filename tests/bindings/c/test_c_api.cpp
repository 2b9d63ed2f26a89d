// The C ABI: every function for programs, contexts and rows in a block. What it predicts is what the host
// backend predicts. The library is the shared one; this test's own copy of the VM is apart from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "vm/small_program.hpp"
#include "support/allocations.hpp"

namespace forestvm::test {
namespace {

using support::allocations_of;

template <class Row>
std::vector<std::uint32_t> scores(fvm_context* context, const RowBlock& rows, fvm_output output,
                                  std::size_t width) {
  std::vector<float> out(rows.count * width);
  EXPECT_EQ(Functions<Row>::kScores(context, static_cast<const Row*>(rows.data), rows.count, rows.stride,
                                    output, out.data(), out.size()),
            FVM_OK)
      << fvm_last_error();
  std::vector<std::uint32_t> bits(out.size());
  std::memcpy(bits.data(), out.data(), out.size() * sizeof(float));
  return bits;
}

/// Everything that the C ABI says about `rows`, which are of this type.
template <class Row = float>
Answers c_answers(const OpenProgram& program, fvm_context* context, const RowBlock& rows) {
  const auto* const data = static_cast<const Row*>(rows.data);
  Answers all;
  all.raw = scores<Row>(context, rows, FVM_OUTPUT_RAW, width_of(program, FVM_OUTPUT_RAW));
  all.value = scores<Row>(context, rows, FVM_OUTPUT_VALUE, width_of(program, FVM_OUTPUT_VALUE));
  all.labels.resize(rows.count * width_of(program, FVM_OUTPUT_CLASS));
  all.leaves.resize(rows.count * width_of(program, FVM_OUTPUT_LEAF));
  EXPECT_EQ(
      Functions<Row>::kLabels(context, data, rows.count, rows.stride, all.labels.data(), all.labels.size()),
      FVM_OK)
      << fvm_last_error();
  EXPECT_EQ(
      Functions<Row>::kLeaves(context, data, rows.count, rows.stride, all.leaves.data(), all.leaves.size()),
      FVM_OK)
      << fvm_last_error();
  return all;
}

TEST(CApi, SaysItsVersion) { EXPECT_STREQ(fvm_version(), FORESTVM_VERSION); }

TEST_F(CApiFile, OpensFromAPath) {
  fvm_program* opened = nullptr;
  ASSERT_EQ(fvm_program_open(path_.c_str(), nullptr, &opened), FVM_OK) << fvm_last_error();
  const OpenProgram program(opened);
  const OpenContext context = context_of(program);
  const std::vector<float> rows = small_rows(50, 3);
  const RowBlock block{rows.data(), 50, 3};
  EXPECT_EQ(c_answers(program, context.get(), block), answers(**host_backend(rich_program()), block));
}

TEST(CApi, OpensFromMemoryOfAnyAlignment) {
  const Program program = rich_program();
  const auto image = program.image();
  const std::vector<float> rows = small_rows(20, 3);
  const RowBlock block{rows.data(), 20, 3};
  const Answers expected = answers(**host_backend(program), block);
  for (std::size_t offset = 0; offset < 9; ++offset) {
    std::vector<std::byte> copy(image.size() + offset);
    std::memcpy(copy.data() + offset, image.data(), image.size());
    fvm_program* raw = nullptr;
    ASSERT_EQ(fvm_program_open_memory(copy.data() + offset, image.size(), nullptr, &raw), FVM_OK)
        << fvm_last_error();
    const OpenProgram opened(raw);
    std::fill(copy.begin(), copy.end(), std::byte{0xff});
    EXPECT_EQ(c_answers(opened, context_of(opened).get(), block), expected);
  }
}

TEST(CApi, SaysTheShape) {
  const OpenProgram program =
      open_memory(compiled(small_forest({.trees = 7, .features = 5, .outputs = 3}), ""));
  std::uint32_t features = 0, outputs = 0, trees = 0;
  EXPECT_EQ(fvm_program_shape(program.get(), &features, &outputs, &trees), FVM_OK);
  EXPECT_EQ(features, 5u);
  EXPECT_EQ(outputs, 3u);
  EXPECT_EQ(trees, 7u);
  EXPECT_EQ(fvm_program_shape(program.get(), nullptr, nullptr, nullptr), FVM_OK);
  EXPECT_EQ(width_of(program, FVM_OUTPUT_RAW), 3u);
  EXPECT_EQ(width_of(program, FVM_OUTPUT_VALUE), 3u);
  EXPECT_EQ(width_of(program, FVM_OUTPUT_CLASS), 1u);
  EXPECT_EQ(width_of(program, FVM_OUTPUT_LEAF), 7u);
  std::uint32_t width = 0;
  expect_failure(fvm_program_width(program.get(), 4, &width), FVM_USAGE, "there is no output 4");
  expect_failure(fvm_program_width(program.get(), -1, &width), FVM_USAGE, "there is no output -1");
  expect_failure(fvm_program_width(program.get(), FVM_OUTPUT_RAW, nullptr), FVM_USAGE,
                 "nowhere to put the width");
}

TEST(CApi, PredictsWhatTheBackendPredicts) {
  const std::vector<float> rows = small_rows(200, 5);
  for (const Program& program : rich_programs()) {
    const auto predictor = host_backend(program);
    for (const std::uint32_t threads : {1u, 2u}) {
      fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
      options.threads = threads;
      const OpenProgram opened = open_memory(program, &options);
      const OpenContext context = context_of(opened);
      for (const RowBlock& block : {RowBlock{rows.data(), 1, 3}, RowBlock{rows.data(), 200, 5},
                                    RowBlock{rows.data() + 1, 199, 5}, RowBlock{rows.data(), 333, 3}})
        EXPECT_EQ(c_answers(opened, context.get(), block), answers(**predictor, block)) << block.count;
    }
  }
}

TEST(CApi, PredictsRowsOfFloat64) {
  const std::vector<float> narrow = small_rows(200, 5);
  std::vector<double> rows(narrow.begin(), narrow.end());
  for (std::size_t i = 0; i < rows.size(); i += 3) rows[i] += 1e-12;  // no float32 lies there
  for (const Program& program : rich_programs()) {
    if (program.meta().score_type == ScalarType::Float64) continue;  // refused: see test_c_api_errors.cpp
    const auto predictor = host_backend(program);
    const OpenProgram opened = open_memory(program);
    const OpenContext context = context_of(opened);
    for (const RowBlock& block :
         {RowBlock{rows.data(), 1, 3, RowType::Float64}, RowBlock{rows.data() + 1, 199, 5, RowType::Float64}})
      EXPECT_EQ(c_answers<double>(opened, context.get(), block), answers(**predictor, block)) << block.count;
  }
}

TEST(CApi, PredictsInFloat64) {
  const std::vector<float> rows = small_rows(100, 3);
  for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64}) {
    Model model = small_forest();
    model.score_type = type;
    const OpenProgram program = open_memory(compiled(model, ""));
    const OpenContext context = context_of(program);
    std::vector<double> wide(300);
    std::vector<float> narrow(300);
    for (const fvm_output output : {FVM_OUTPUT_RAW, FVM_OUTPUT_VALUE}) {
      EXPECT_EQ(fvm_predict_wide_f32(context.get(), rows.data(), 100, 3, output, wide.data(), 300), FVM_OK);
      EXPECT_EQ(fvm_predict_f32(context.get(), rows.data(), 100, 3, output, narrow.data(), 300), FVM_OK);
      EXPECT_EQ(std::vector<float>(wide.begin(), wide.end()), narrow);
      // Softmax rounds; so do not sums of the small forest's leaves.
      const bool exact = std::vector<double>(narrow.begin(), narrow.end()) == wide;
      EXPECT_EQ(exact, type == ScalarType::Float32 || output == FVM_OUTPUT_RAW);
    }
    expect_failure(fvm_predict_wide_f32(context.get(), rows.data(), 100, 3, FVM_OUTPUT_RAW, wide.data(), 299),
                   FVM_USAGE, "room for 299 numbers");
    expect_failure(
        fvm_predict_wide_f32(context.get(), rows.data(), 100, 3, FVM_OUTPUT_LEAF, wide.data(), 300),
        FVM_USAGE, "labels and leaves");
    expect_failure(fvm_predict_wide_f32(context.get(), rows.data(), 100, 3, FVM_OUTPUT_RAW, nullptr, 300),
                   FVM_USAGE, "null");
  }
}

TEST(CApi, PredictsRowByRow) {
  const Program program = rich_program();
  const std::vector<float> rows = small_rows(100, 3);
  const OpenProgram opened = open_memory(program);
  const OpenContext context = context_of(opened);
  const Answers expected = answers(**host_backend(program), RowBlock{rows.data(), 100, 3});
  for (std::size_t row = 0; row < 100; ++row) {
    const Answers one = c_answers(opened, context.get(), {rows.data() + row * 3, 1, 3});
    for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(one.raw[k], expected.raw[row * 3 + k]);
    EXPECT_EQ(one.labels[0], expected.labels[row]);
  }
}

TEST(CApi, PredictsNoRows) {
  const OpenProgram program = open_memory(rich_program());
  const OpenContext context = context_of(program);
  EXPECT_EQ(fvm_predict_f32(context.get(), nullptr, 0, 0, FVM_OUTPUT_VALUE, nullptr, 0), FVM_OK);
  EXPECT_EQ(fvm_predict_class_f32(context.get(), nullptr, 0, 0, nullptr, 0), FVM_OK);
  EXPECT_EQ(fvm_predict_leaf_f32(context.get(), nullptr, 0, 0, nullptr, 0), FVM_OK);
  EXPECT_EQ(fvm_predict_f64(context.get(), nullptr, 0, 0, FVM_OUTPUT_VALUE, nullptr, 0), FVM_OK);
}

TEST(CApi, ContextsOutliveTheirProgram) {
  const Program program = rich_program();
  const std::vector<float> rows = small_rows(10, 3);
  const RowBlock block{rows.data(), 10, 3};
  OpenProgram opened = open_memory(program);
  const OpenContext context = context_of(opened);
  opened.reset();
  EXPECT_EQ(scores<float>(context.get(), block, FVM_OUTPUT_RAW, 3),
            answers(**host_backend(program), block).raw);
}

TEST(CApi, ServesThreadsWithAContextEach) {
  const Program program = rich_program();
  const std::vector<float> rows = small_rows(300, 3);
  const Answers expected = answers(**host_backend(program), RowBlock{rows.data(), 300, 3});
  fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
  for (const std::uint32_t threads : {1u, 2u}) {
    options.threads = threads;
    const OpenProgram opened = open_memory(program, &options);
    std::vector<std::thread> callers;
    for (int i = 0; i < 4; ++i)
      callers.emplace_back([&] {
        const OpenContext context = context_of(opened);
        for (int call = 0; call < 20; ++call)
          EXPECT_EQ(c_answers(opened, context.get(), {rows.data(), 300, 3}), expected);
      });
    for (std::thread& caller : callers) caller.join();
  }
}

TEST(CApi, AllocatesNothingAfterTheFirstCall) {
  const std::vector<float> rows = small_rows(100, 3);
  for (const Program& program : rich_programs()) {
    const OpenProgram opened = open_memory(program);
    OpenContext context;
    EXPECT_GT(allocations_of([&] { context = context_of(opened); }), 0u);  // the library's are counted
    const std::vector<double> wide(rows.begin(), rows.end());
    std::vector<float> out(300);
    std::vector<std::int64_t> labels(100);
    std::vector<std::int32_t> leaves(600);
    const bool takes_wide = program.meta().score_type == ScalarType::Float32;
    const auto all_outputs = [&](std::size_t count) {
      fvm_context* const with = context.get();
      EXPECT_EQ(fvm_predict_f32(with, rows.data(), count, 3, FVM_OUTPUT_RAW, out.data(), 300), FVM_OK);
      EXPECT_EQ(fvm_predict_f32(with, rows.data(), count, 3, FVM_OUTPUT_VALUE, out.data(), 300), FVM_OK);
      EXPECT_EQ(fvm_predict_class_f32(with, rows.data(), count, 3, labels.data(), 100), FVM_OK);
      EXPECT_EQ(fvm_predict_leaf_f32(with, rows.data(), count, 3, leaves.data(), 600), FVM_OK);
      if (!takes_wide) return;
      EXPECT_EQ(fvm_predict_f64(with, wide.data(), count, 3, FVM_OUTPUT_VALUE, out.data(), 300), FVM_OK);
      EXPECT_EQ(fvm_predict_class_f64(with, wide.data(), count, 3, labels.data(), 100), FVM_OK);
      EXPECT_EQ(fvm_predict_leaf_f64(with, wide.data(), count, 3, leaves.data(), 600), FVM_OK);
    };
    all_outputs(100);
    for (const std::size_t count : {100u, 1u, 0u}) EXPECT_EQ(allocations_of([&] { all_outputs(count); }), 0u);
  }
}

}  // namespace
}  // namespace forestvm::test
