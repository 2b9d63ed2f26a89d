// GPU backends as Predictors, on the emulator: outputs and rows of every kind, and invalid calls.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/emulator.hpp>

#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_gpu_predictor {
namespace {

constexpr const char* kSchedule =
    "tile(batch, b0, b1, 8); tile(tree, t0, t1, 2); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
    "gpuDimension(t0, block.x); cache(b0)";

std::unique_ptr<Predictor> loaded(Result<std::unique_ptr<Predictor>> backend) {
  EXPECT_TRUE(backend.ok()) << (backend.ok() ? "" : backend.error().text());
  return std::move(backend).value();
}

struct GpuPredictor : testing::Test {
  Model model = support::model_of(support::six_trees(), 2);
  std::unique_ptr<Predictor> host = loaded(host_backend(compiled(model, "", Contract::Reproducible)));
  std::unique_ptr<Predictor> gpu =
      loaded(emulator_backend(compiled(model, kSchedule, Contract::Reproducible)));
  std::unique_ptr<Context> host_context = host->make_context(), gpu_context = gpu->make_context();
  std::vector<float> rows;

  GpuPredictor() {
    for (int i = 0; i < 4 * 21; ++i) rows.push_back(static_cast<float>(i % 17) * 0.4f - 2);
  }
  RowBlock block() const { return {rows.data(), 21, 4}; }
};

template <class T, class Call>
std::vector<T> answers(std::size_t size, Call call) {
  std::vector<T> out(size);
  const Result<void> done = call(out.data());
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
  return out;
}

TEST_F(GpuPredictor, EveryOutputIsTheHosts) {
  for (const OutputKind output : {OutputKind::Raw, OutputKind::Value}) {
    EXPECT_EQ(
        answers<float>(42, [&](float* out) { return gpu->predict(*gpu_context, block(), output, out); }),
        answers<float>(42, [&](float* out) { return host->predict(*host_context, block(), output, out); }));
    EXPECT_EQ(answers<double>(
                  42, [&](double* out) { return gpu->predict_wide(*gpu_context, block(), output, out); }),
              answers<double>(
                  42, [&](double* out) { return host->predict_wide(*host_context, block(), output, out); }));
  }
  EXPECT_EQ(
      answers<std::int64_t>(21, [&](auto* out) { return gpu->predict_class(*gpu_context, block(), out); }),
      answers<std::int64_t>(21, [&](auto* out) { return host->predict_class(*host_context, block(), out); }));
  EXPECT_EQ(
      answers<std::int32_t>(21 * 6, [&](auto* out) { return gpu->predict_leaf(*gpu_context, block(), out); }),
      answers<std::int32_t>(21 * 6,
                            [&](auto* out) { return host->predict_leaf(*host_context, block(), out); }));
}

TEST_F(GpuPredictor, RowsOfOtherKinds) {
  const auto wanted = answers<float>(
      42, [&](float* out) { return gpu->predict(*gpu_context, block(), OutputKind::Raw, out); });
  const std::vector<double> wide(rows.begin(), rows.end());
  const RowBlock doubles{wide.data(), 21, 4, RowType::Float64};
  EXPECT_EQ(wanted, answers<float>(42, [&](float* out) {
              return gpu->predict(*gpu_context, doubles, OutputKind::Raw, out);
            }));
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> columns;
  for (int i = 0; i <= 21; ++i) offsets.push_back(4 * i);
  for (int i = 0; i < 4 * 21; ++i) columns.push_back(i % 4);
  const CsrRows csr{21, offsets.data(), columns.data(), rows.data(), rows.size(), Absent::Missing};
  EXPECT_EQ(wanted, answers<float>(42, [&](float* out) {
              return gpu->predict(*gpu_context, csr, OutputKind::Raw, out);
            }));
  std::vector<float> apart;
  for (std::size_t i = 0; i < 21; ++i) {
    apart.insert(apart.end(), rows.begin() + static_cast<std::ptrdiff_t>(4 * i),
                 rows.begin() + static_cast<std::ptrdiff_t>(4 * i + 4));
    if (i != 20) apart.insert(apart.end(), 3, 99.0f);
  }
  const RowBlock strided{apart.data(), 21, 7};
  EXPECT_EQ(wanted, answers<float>(42, [&](float* out) {
              return gpu->predict(*gpu_context, strided, OutputKind::Raw, out);
            }));
}

TEST_F(GpuPredictor, NoRows) {
  EXPECT_TRUE(gpu->predict(*gpu_context, RowBlock{}, OutputKind::Raw, nullptr).ok());
}

TEST_F(GpuPredictor, RefusesWrongCalls) {
  std::vector<float> out(42);
  const auto error = [](const Result<void>& result) { return result.ok() ? "none" : result.error().text(); };
  EXPECT_EQ(error(gpu->predict(*host_context, block(), OutputKind::Raw, out.data())),
            "the context belongs to another backend");
  EXPECT_EQ(error(gpu->predict(*gpu_context, RowBlock{rows.data(), 21, 3}, OutputKind::Raw, out.data())),
            "rows of 3 values for a model of 4 features");
  EXPECT_EQ(error(gpu->predict(*gpu_context, block(), OutputKind::Raw, nullptr)),
            "a pointer of the rows, or the output, is null");
  EXPECT_EQ(error(gpu->predict(*gpu_context, CodedRows{}, OutputKind::Raw, out.data())),
            "the program has no encoder: compile the model with a schedule that has encode(u8)");
}

TEST(GpuBackend, RefusesProgramsForTheHost) {
  const auto gpu = emulator_backend(compiled(support::model_of(support::six_trees(), 2), ""));
  ASSERT_FALSE(gpu.ok());
  EXPECT_EQ(
      gpu.error().text(),
      "none of the program's loops is mapped to a GPU's grid and blocks (gpuDimension): it runs on the host, not on "
      "the emulator; compile the model with a schedule for GPUs");
}

}  // namespace
}  // namespace forestvm::test::test_gpu_predictor
