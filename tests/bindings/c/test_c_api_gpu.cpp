// Programs on a GPU through the C ABI. The GPU is the emulator (tests/kernels/emulated_library.cpp): its
// memory is the host's, and its default stream runs everything at once.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_c_api_gpu {
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

  /// Describe the same rows as rows in the host's memory, and as rows in the device's.
  fvm_rows host_rows() const {
    return FVM_DENSE_ROWS(rows_.data(), FVM_TYPE_FLOAT32, kRows, mapped_.meta().num_features);
  }
  fvm_rows device_rows() const { return FVM_DEVICE_ROWS(rows_.data(), kRows, mapped_.meta().num_features); }

  template <class Number>
  void expect_hosts_predictions(const fvm_rows& rows, fvm_output output) {
    const std::size_t width = width_of(program_, output);
    EXPECT_EQ(predicted<Number>(context_.get(), rows, output, width),
              predicted<Number>(host_.context(), host_rows(), output, width))
        << "rows of kind " << rows.kind << ", output " << output << ", type " << kTypeOf<Number>;
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
  for (const fvm_rows& rows : {host_rows(), device_rows()}) {
    for (const fvm_output output : {FVM_OUTPUT_RAW, FVM_OUTPUT_VALUE}) {
      expect_hosts_predictions<float>(rows, output);
      expect_hosts_predictions<double>(rows, output);
    }
    expect_hosts_predictions<std::int64_t>(rows, FVM_OUTPUT_CLASS);
    expect_hosts_predictions<std::int32_t>(rows, FVM_OUTPUT_LEAF);
  }
  expect_hosts_predictions<std::int32_t>(host_rows(), FVM_OUTPUT_CLASS);
  expect_hosts_predictions<std::int64_t>(host_rows(), FVM_OUTPUT_LEAF);
}

TEST_F(CApiGpu, TakesHostRowsOfAnyKindAndType) {
  const std::size_t features = mapped_.meta().num_features;
  std::vector<double> by_columns(rows_.size());
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::int32_t> columns;
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t column = 0; column < features; ++column) {
      by_columns[column * kRows + row] = static_cast<double>(rows_[row * features + column]);
      columns.push_back(static_cast<std::int32_t>(column));
    }
    offsets.push_back(static_cast<std::int64_t>(columns.size()));
  }
  const std::vector<double> by_rows(rows_.begin(), rows_.end());
  for (const fvm_rows& rows :
       {fvm_rows FVM_COLUMN_MAJOR_ROWS(by_columns.data(), FVM_TYPE_FLOAT64, kRows, features),
        fvm_rows FVM_CSR_ROWS(offsets.data(), columns.data(), by_rows.data(), FVM_TYPE_FLOAT64, kRows,
                              columns.size())}) {
    expect_hosts_predictions<float>(rows, FVM_OUTPUT_RAW);
    expect_hosts_predictions<std::int64_t>(rows, FVM_OUTPUT_LEAF);
  }
}

TEST_F(CApiGpu, RefusesRowsAndResultsThatTheDeviceDoesNotConvert) {
  std::vector<std::int64_t> wide(kRows * 8);
  std::vector<std::int32_t> narrow(kRows * 8);
  expect_failure(predict(context_.get(), device_rows(), FVM_OUTPUT_LEAF, wide), FVM_REFUSED,
                 "output: lies on the device, where labels are int64 and leaf numbers are int32");
  expect_failure(predict(context_.get(), device_rows(), FVM_OUTPUT_CLASS, narrow), FVM_REFUSED,
                 "output: lies on the device");
  std::vector<float> out(kRows * 8);
  fvm_rows rows = device_rows();
  for (fvm_type type = FVM_TYPE_FLOAT64; type <= FVM_TYPE_BOOL; ++type) {
    rows.type = type;
    expect_failure(predict(context_.get(), rows, FVM_OUTPUT_RAW, out), FVM_REFUSED,
                   "rows: lie on the device, where they are read as they are: row-major FVM_TYPE_FLOAT32");
  }
  rows = device_rows();
  rows.row_stride = 1;
  rows.column_stride = kRows;
  expect_failure(predict(context_.get(), rows, FVM_OUTPUT_RAW, out), FVM_REFUSED, "row-major");
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
  std::size_t bytes = 0;
  ASSERT_EQ(fvm_encoded_size(program.get(), kRows, &bytes), FVM_OK) << fvm_last_error();
  std::vector<std::uint8_t> codes(bytes);
  const fvm_rows rows = host_rows();
  fvm_rows coded = FVM_ROWS_INIT;
  ASSERT_EQ(fvm_encode(encoder.context(), &rows, codes.data(), bytes, &coded), FVM_OK) << fvm_last_error();
  const std::size_t width = width_of(program, FVM_OUTPUT_RAW), trees = width_of(program, FVM_OUTPUT_LEAF);
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(predicted<float>(context.get(), coded, FVM_OUTPUT_RAW, width),
              predicted<float>(host_.context(), rows, FVM_OUTPUT_RAW, width));
    EXPECT_EQ(predicted<std::int64_t>(context.get(), coded, FVM_OUTPUT_LEAF, trees),
              predicted<std::int64_t>(host_.context(), rows, FVM_OUTPUT_LEAF, trees));
  }
  expect_failure(fvm_encode(context.get(), &rows, codes.data(), bytes, &coded), FVM_REFUSED,
                 "this backend encodes no rows: the host does");
  std::vector<float> out(kRows * width);
  coded.encoder ^= 1;
  expect_failure(predict(context.get(), coded, FVM_OUTPUT_RAW, out), FVM_REFUSED,
                 "the rows are encoded for another program");
  expect_failure(predict(context_.get(), coded, FVM_OUTPUT_RAW, out), FVM_REFUSED,
                 "the program has no encoder");
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
  expect_failure(fvm_gpu_count(FVM_GPU_HIP, nullptr), FVM_USAGE, "the pointer to the count");
}

TEST_F(CApiGpu, RefusesWhatMakesNoSense) {
  fvm_rows rows = device_rows();
  std::vector<float> out(kRows * 8), little(1);
  expect_usage(predict(host_.context(), rows, FVM_OUTPUT_RAW, out), "the rows lie in a GPU's memory");
  expect_usage(predict(context_.get(), rows, FVM_OUTPUT_RAW, little), "the output has room for 1 numbers");
  rows.device = 1;
  expect_usage(predict(context_.get(), rows, FVM_OUTPUT_RAW, out),
               "the rows are on device 1, the program is on device 0");
  rows = device_rows();
  rows.row_stride = -1;
  expect_usage(predict(context_.get(), rows, FVM_OUTPUT_RAW, out), "negative strides are not supported");
  rows.row_stride = 1;
  expect_usage(predict(context_.get(), rows, FVM_OUTPUT_RAW, out), "rows of 1 values for a model of ");
}

}  // namespace
}  // namespace forestvm::test::test_c_api_gpu
