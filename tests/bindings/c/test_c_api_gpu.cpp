// The C ABI: programs on a GPU, which is the emulator here (tests/kernels/emulated_library.cpp): its memory
// is the host's, its default stream does everything at once.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test {
namespace {

constexpr const char* kMapped =
    "tile(batch, b0, b1, 8); reorder(b0, b1, tree); gpuDimension(b0, grid.x); gpuDimension(b1, block.x)";

class CApiGpu : public CApiFile {
 protected:
  void SetUp() override {
    CApiFile::SetUp();
    setenv("FORESTVM_PLUGINS", FORESTVM_EMULATED_LIBRARY, 1);
    ASSERT_TRUE(mapped_.save(path_).ok());
    fvm_program* opened = nullptr;
    EXPECT_EQ(fvm_program_open_gpu(path_.c_str(), nullptr, &opened), FVM_OK) << fvm_last_error();
    program_.reset(opened);
    context_ = context_of(program_);
    const std::uint32_t features = mapped_.meta().num_features;
    for (std::size_t i = 0; i < kRows * features; ++i) rows_.push_back(static_cast<float>(i % 13) * 0.5f - 2);
  }
  void TearDown() override { unsetenv("FORESTVM_PLUGINS"); }

  fvm_device_rows device_rows() const {
    fvm_device_rows rows = FVM_DEVICE_ROWS_INIT;
    rows.rows = rows_.data();
    rows.row_count = kRows;
    rows.row_stride = mapped_.meta().num_features;
    return rows;
  }

  static constexpr std::size_t kRows = 20;
  const Model model_ = small_forest();
  const Program mapped_ = compiled(model_, kMapped);
  const Opened host_ = Opened(compiled(model_, ""));
  std::vector<float> rows_;
  OpenProgram program_;
  OpenContext context_;
};

TEST_F(CApiGpu, RowsOfEitherMemoryGetTheHostsPredictions) {
  EXPECT_STREQ(fvm_program_description(program_.get()),
               "emulator of a GPU, warps of 32 threads, orders from seed 1");
  const fvm_device_rows rows = device_rows();
  std::vector<float> expected(kRows * 8), from_host = expected, on_device = expected;
  const std::size_t stride = rows.row_stride;
  ASSERT_EQ(fvm_predict_f32(host_.context(), rows_.data(), kRows, stride, FVM_OUTPUT_RAW, expected.data(),
                            expected.size()),
            FVM_OK);
  EXPECT_EQ(fvm_predict_f32(context_.get(), rows_.data(), kRows, stride, FVM_OUTPUT_RAW, from_host.data(),
                            from_host.size()),
            FVM_OK)
      << fvm_last_error();
  EXPECT_EQ(fvm_predict_device(context_.get(), &rows, FVM_OUTPUT_RAW, on_device.data(), on_device.size()),
            FVM_OK)
      << fvm_last_error();
  EXPECT_EQ(from_host, expected);
  EXPECT_EQ(on_device, expected);
  std::vector<double> expected_wide(kRows * 8), wide(kRows * 8);
  EXPECT_EQ(fvm_predict_wide_f32(host_.context(), rows_.data(), kRows, stride, FVM_OUTPUT_RAW,
                                 expected_wide.data(), expected_wide.size()),
            FVM_OK);
  EXPECT_EQ(fvm_predict_wide_device(context_.get(), &rows, FVM_OUTPUT_RAW, wide.data(), wide.size()), FVM_OK);
  EXPECT_EQ(wide, expected_wide);
  std::vector<std::int32_t> expected_leaves(kRows * mapped_.meta().num_trees), leaves = expected_leaves;
  EXPECT_EQ(fvm_predict_leaf_f32(host_.context(), rows_.data(), kRows, stride, expected_leaves.data(),
                                 expected_leaves.size()),
            FVM_OK);
  EXPECT_EQ(fvm_predict_leaf_device(context_.get(), &rows, leaves.data(), leaves.size()), FVM_OK);
  EXPECT_EQ(leaves, expected_leaves);
  std::vector<std::int64_t> expected_labels(kRows), labels(kRows);
  const fvm_status status = fvm_predict_class_f32(host_.context(), rows_.data(), kRows, stride,
                                                  expected_labels.data(), expected_labels.size());
  EXPECT_EQ(fvm_predict_class_device(context_.get(), &rows, labels.data(), labels.size()), status);
  EXPECT_EQ(labels, expected_labels);
}

TEST_F(CApiGpu, FromMemoryToo) {
  fvm_program* opened = nullptr;
  const auto image = mapped_.image();
  EXPECT_EQ(fvm_program_open_gpu_memory(image.data(), image.size(), nullptr, &opened), FVM_OK);
  const OpenProgram program(opened);
  EXPECT_NE(program, nullptr);
}

TEST_F(CApiGpu, TakesRowsThatTheHostEncoded) {
  const Opened encoder(compiled(model_, "encode(u8)"));
  const Program mapped = compiled(model_, std::string(kMapped) + "; encode(u8)");
  const auto image = mapped.image();
  fvm_program* opened = nullptr;
  ASSERT_EQ(fvm_program_open_gpu_memory(image.data(), image.size(), nullptr, &opened), FVM_OK)
      << fvm_last_error();
  const OpenProgram program(opened);
  const OpenContext context = context_of(program);
  const std::size_t stride = mapped_.meta().num_features;
  std::size_t bytes = 0;
  ASSERT_EQ(fvm_encoded_size(program.get(), kRows, &bytes), FVM_OK) << fvm_last_error();
  std::vector<std::uint8_t> codes(bytes);
  fvm_coded_rows coded = FVM_CODED_ROWS_INIT;
  ASSERT_EQ(fvm_encode_f32(encoder.context(), rows_.data(), kRows, stride, codes.data(), bytes, &coded),
            FVM_OK)
      << fvm_last_error();
  std::vector<float> expected(kRows * 8), out = expected;
  ASSERT_EQ(fvm_predict_f32(host_.context(), rows_.data(), kRows, stride, FVM_OUTPUT_RAW, expected.data(),
                            expected.size()),
            FVM_OK);
  for (int again = 0; again < 3; ++again) {
    out.assign(out.size(), 0);
    EXPECT_EQ(fvm_predict_coded(context.get(), &coded, FVM_OUTPUT_RAW, out.data(), out.size()), FVM_OK)
        << fvm_last_error();
    EXPECT_EQ(out, expected);
  }
  expect_failure(fvm_encode_f32(context.get(), rows_.data(), kRows, stride, codes.data(), bytes, &coded),
                 FVM_REFUSED, "this backend encodes no rows: the host does");
  coded.encoder ^= 1;
  expect_failure(fvm_predict_coded(context.get(), &coded, FVM_OUTPUT_RAW, out.data(), out.size()),
                 FVM_REFUSED, "the rows are encoded for another program");
  expect_failure(fvm_predict_coded(context_.get(), &coded, FVM_OUTPUT_RAW, out.data(), out.size()),
                 FVM_REFUSED, "the program has no encoder");
}

TEST_F(CApiGpu, SaysWhatIsAbsent) {
  std::uint32_t count = 0;
  EXPECT_EQ(fvm_gpu_count(FVM_GPU_CUDA, &count), FVM_OK) << fvm_last_error();
  EXPECT_EQ(count, 1u);
  fvm_program* opened = nullptr;
  fvm_gpu_options options = FVM_GPU_OPTIONS_INIT;
  options.device = 3;
  expect_failure(fvm_program_open_gpu(path_.c_str(), &options, &opened), FVM_ENVIRONMENT,
                 "fvm_program_open_gpu: no emulated device 3");
  options.vendor = 2;
  expect_failure(fvm_program_open_gpu(path_.c_str(), &options, &opened), FVM_USAGE,
                 "the vendor is 2, not FVM_GPU_CUDA or FVM_GPU_HIP");
  setenv("FORESTVM_PLUGINS", "no/such/folder", 1);
  expect_failure(fvm_program_open_gpu(path_.c_str(), nullptr, &opened), FVM_ENVIRONMENT,
                 "no CUDA backend: there is no no/such/folder/libforestvm_cuda.so");
  expect_failure(fvm_gpu_count(FVM_GPU_HIP, &count), FVM_ENVIRONMENT, "fvm_gpu_count: no HIP backend: ");
  expect_failure(fvm_gpu_count(FVM_GPU_HIP, nullptr), FVM_USAGE, "nowhere to put the count");
}

TEST_F(CApiGpu, RefusesWhatMakesNoSense) {
  fvm_device_rows rows = device_rows();
  std::vector<float> out(kRows * 8);
  const auto predict = [&](fvm_context* context) {
    return fvm_predict_device(context, &rows, FVM_OUTPUT_RAW, out.data(), out.size());
  };
  expect_failure(predict(host_.context()), FVM_USAGE, "the rows lie in a GPU's memory");
  expect_failure(fvm_predict_device(context_.get(), nullptr, FVM_OUTPUT_RAW, out.data(), out.size()),
                 FVM_USAGE, "the rows are null");
  expect_failure(fvm_predict_device(context_.get(), &rows, FVM_OUTPUT_RAW, out.data(), 1), FVM_USAGE,
                 "the output has room for 1 numbers");
  rows.device = 1;
  expect_failure(predict(context_.get()), FVM_USAGE, "the rows are on device 1, the program is on device 0");
  rows.size = 8;
  expect_failure(predict(context_.get()), FVM_USAGE, "begin with FVM_DEVICE_ROWS_INIT");
}

}  // namespace
}  // namespace forestvm::test
