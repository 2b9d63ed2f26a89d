// The passes of calls through a device: slabs that alternate between lanes, fewer rows when its memory runs out,
// and the caller's stream for rows in its memory. The emulator's queues run their work only when
// they are waited for, so that a missing wait gives wrong answers here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/named_schedules.hpp>

#include "kernels/backend/predictor.hpp"
#include "kernels/emulator/runtime.hpp"
#include "kernels/emulator/stream.hpp"
#include "kernels/mapped_nests.hpp"
#include "kernels/vendor/emulator/grid.hpp"
#include "support/small_models.hpp"
#include "vm/derived_model.hpp"
#include "vm/small_program.hpp"

namespace forestvm::kernels::test_passes {
namespace {

constexpr std::size_t kRows = 1000;

std::string text_of(const Result<void>& result) { return result.ok() ? "done" : result.error().text(); }

class Passes : public testing::Test {
 protected:
  Passes() {
    for (std::size_t i = 0; i < 4 * kRows; ++i) rows_.push_back(static_cast<float>(i * 7 % 31) * 0.3f - 3);
    expected_ = scores(*host_);
  }

  Program program(const std::string& schedule) const {
    return test::compiled(model_, schedule, Contract::Reproducible);
  }

  std::unique_ptr<Predictor> emulated(const PassBounds& bounds, const EmulatorSettings& settings = {}) const {
    auto predictor = make_predictor(program(kTreesInGrid), make_emulator_runtime(settings), "it", bounds);
    EXPECT_TRUE(predictor.ok()) << (predictor.ok() ? "" : predictor.error().text());
    return std::move(predictor).value();
  }

  AnyRows block() const { return RowBlock{rows_.data(), kRows, 4}; }

  std::vector<float> scores(const Predictor& predictor) const {
    std::vector<float> out(kRows * 2);
    const auto context = predictor.make_context();
    EXPECT_EQ(text_of(predictor.predict(*context, block(), OutputKind::Value, out.data())), "done");
    return out;
  }

  const Model model_ = support::model_of(support::six_trees(), 2);
  const std::unique_ptr<Predictor> host_ = host_backend(program("")).value();
  std::vector<float> rows_, expected_;
};

TEST_F(Passes, SlabsOfAnySize) {
  for (const std::size_t slab_rows : {1u, 7u, 333u, 500u, 999u, 1000u, 4000u}) {
    const auto gpu = emulated({.slab_bytes = slab_rows * (4 + 2) * sizeof(float)});
    EXPECT_EQ(scores(*gpu), expected_) << slab_rows;
  }
}

TEST_F(Passes, SlabsOfSparseRows) {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns;
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::int32_t c = 0; c < 4; ++c) columns.push_back(c);
    offsets.push_back(static_cast<std::int64_t>(4 * i + 4));
  }
  const auto gpu = emulated({.slab_bytes = 2400});
  const auto context = gpu->make_context();
  std::vector<float> out(kRows * 2);
  const CsrRows csr{kRows, offsets.data(), columns.data(), rows_.data(), rows_.size(), Absent::Missing};
  EXPECT_EQ(text_of(gpu->predict(*context, csr, OutputKind::Value, out.data())), "done");
  EXPECT_EQ(out, expected_);
  columns[4 * 700] = 4;
  EXPECT_NE(text_of(gpu->predict(*context, csr, OutputKind::Value, out.data())).find("row 700"),
            std::string::npos);
  columns[4 * 700] = 0;
  EXPECT_EQ(text_of(gpu->predict(*context, csr, OutputKind::Value, out.data())), "done");
  EXPECT_EQ(out, expected_);
}

/// Returns the least memory with which a program can be loaded.
std::size_t memory_of(const Program& program) {
  for (std::size_t bytes = 0;; bytes += 64)
    if (make_predictor(program, make_emulator_runtime({.memory_bytes = bytes}), "it").ok()) return bytes;
}

TEST_F(Passes, ShrinkWhereMemoryRunsOut) {
  const std::size_t loaded = memory_of(program(kTreesInGrid));
  std::vector<std::int32_t> expected_leaves(kRows * 6);
  const auto host_context = host_->make_context();
  EXPECT_EQ(text_of(host_->predict_leaf(*host_context, block(), expected_leaves.data())), "done");
  unsigned refused = 0, predicted = 0;
  const auto is_done = [&](const Result<void>& result) {
    ++(result.ok() ? predicted : refused);
    if (result.ok()) return true;
    EXPECT_EQ(result.error().code, ErrorCode::Environment);
    EXPECT_TRUE(result.error().text().starts_with("out of memory: ")) << result.error().text();
    EXPECT_NE(result.error().text().find(" bytes asked for, the device has "), std::string::npos);
    return false;
  };
  for (std::size_t more = 0; more < 20'000; more += 500) {
    const auto gpu = emulated({.fewest_rows = 16}, {.memory_bytes = loaded + more});
    const auto context = gpu->make_context();
    for (unsigned again = 0; again < 2; ++again) {
      std::vector<std::int32_t> leaves(kRows * 6);
      std::vector<float> out(kRows * 2);
      if (is_done(gpu->predict_leaf(*context, block(), leaves.data()))) {
        EXPECT_EQ(leaves, expected_leaves) << more;
      }
      if (is_done(gpu->predict(*context, block(), OutputKind::Value, out.data()))) {
        EXPECT_EQ(out, expected_) << more;
      }
    }
  }
  EXPECT_GT(refused, 4u);
  EXPECT_GT(predicted, 100u);
}

// --- rows on the device: the emulator's memory is the host's ---

TEST_F(Passes, RowsOnTheDeviceAndTheCallersStream) {
  const auto gpu = emulated({.pass_bytes = 4096});
  const auto context = gpu->make_context();
  emulator::Stream stream, other;
  const DeviceRows rows{rows_.data(), kRows, 4, 0, &stream};
  std::vector<float> out(kRows * 2), again(kRows * 2);
  EXPECT_EQ(text_of(gpu->predict(*context, rows, OutputKind::Value, out.data())), "done");
  EXPECT_EQ(out, std::vector<float>(kRows * 2)) << "before the stream has come to its end";
  // The context's memory is used again: the previous call is waited for.
  const DeviceRows others{rows_.data(), kRows, 4, 0, &other};
  EXPECT_EQ(text_of(gpu->predict(*context, others, OutputKind::Value, again.data())), "done");
  EXPECT_EQ(out, expected_);
  EXPECT_EQ(text_of(stream.wait()), "done");
  EXPECT_EQ(text_of(other.wait()), "done");
  EXPECT_EQ(again, expected_);
  // Two calls on one stream, with a call for rows of the host between them.
  std::vector<float> first(kRows * 2), second(kRows * 2);
  EXPECT_EQ(text_of(gpu->predict(*context, others, OutputKind::Value, first.data())), "done");
  EXPECT_EQ(text_of(gpu->predict(*context, block(), OutputKind::Value, again.data())), "done");
  EXPECT_EQ(text_of(gpu->predict(*context, others, OutputKind::Value, second.data())), "done");
  EXPECT_EQ(text_of(other.wait()), "done");
  EXPECT_EQ(first, expected_);
  EXPECT_EQ(again, expected_);
  EXPECT_EQ(second, expected_);
}

/// Calls of one shape run as graphs from the second on.
TEST_F(Passes, CallsThatComeAgain) {
  const auto gpu = emulated({.slab_bytes = 333 * (4 + 2) * sizeof(float), .pass_bytes = 1 << 16});
  const auto context = gpu->make_context();
  std::vector<float> others(rows_.rbegin(), rows_.rend()), others_expected(kRows * 2);
  const RowBlock other_block{others.data(), kRows, 4};
  const auto host_context = host_->make_context();
  EXPECT_EQ(text_of(host_->predict(*host_context, other_block, OutputKind::Value, others_expected.data())),
            "done");
  emulator::Stream stream;
  for (unsigned i = 0; i < 6; ++i) {
    const bool other = i % 2 != 0;
    std::vector<float> out(kRows * 2), on_device(kRows * 2);
    const AnyRows rows = other ? AnyRows(other_block) : block();
    const DeviceRows there{other ? others.data() : rows_.data(), kRows, 4, 0, &stream};
    EXPECT_EQ(text_of(gpu->predict(*context, there, OutputKind::Value, on_device.data())), "done");
    EXPECT_EQ(text_of(gpu->predict(*context, rows, OutputKind::Value, out.data())), "done");
    EXPECT_EQ(on_device, std::vector<float>(kRows * 2)) << "before the stream has come to its end";
    EXPECT_EQ(text_of(stream.wait()), "done");
    EXPECT_EQ(out, other ? others_expected : expected_) << i;
    EXPECT_EQ(on_device, other ? others_expected : expected_) << i;
  }
}

/// The caller may replay a captured call any number of times, with new contents in the rows' memory.
TEST_F(Passes, AStreamThatIsCaptured) {
  const auto gpu = emulated({});
  const auto context = gpu->make_context();
  emulator::Stream stream;
  std::vector<float> given(rows_.size()), out(kRows * 2);
  const DeviceRows rows{given.data(), kRows, 4, 0, &stream};
  for (unsigned i = 0; i < 3; ++i)
    EXPECT_EQ(text_of(gpu->predict(*context, rows, OutputKind::Value, out.data())), "done");
  EXPECT_EQ(text_of(stream.wait()), "done");
  out.assign(out.size(), 0);
  stream.begin_capture();
  EXPECT_EQ(text_of(gpu->predict(*context, rows, OutputKind::Value, out.data())), "done");
  const auto captured = stream.end_capture();
  EXPECT_EQ(text_of(stream.wait()), "done");
  EXPECT_EQ(out, std::vector<float>(kRows * 2));
  given = rows_;
  for (unsigned i = 0; i < 2; ++i) {
    out.assign(out.size(), 0);
    for (const auto& work : captured) stream.add(work);
    EXPECT_EQ(text_of(stream.wait()), "done");
    EXPECT_EQ(out, expected_);
  }
}

TEST_F(Passes, MemoryGrowsAfterTheCallsThatUseIt) {
  const auto gpu = emulated({});
  const auto context = gpu->make_context();
  emulator::Stream stream;
  std::vector<float> few(20), all(kRows * 2);
  const DeviceRows first{rows_.data(), 10, 4, 0, &stream}, rows{rows_.data(), kRows, 4, 0, &stream};
  EXPECT_EQ(text_of(gpu->predict(*context, first, OutputKind::Value, few.data())), "done");
  EXPECT_EQ(text_of(gpu->predict(*context, rows, OutputKind::Value, all.data())), "done");
  EXPECT_EQ(few, std::vector<float>(expected_.begin(), expected_.begin() + 20));
  EXPECT_EQ(text_of(stream.wait()), "done");
  EXPECT_EQ(all, expected_);
}

TEST_F(Passes, AContextEndsAfterItsCalls) {
  const auto gpu = emulated({});
  emulator::Stream stream;
  std::vector<float> out(kRows * 2);
  {
    const auto context = gpu->make_context();
    const DeviceRows rows{rows_.data(), kRows, 4, 0, &stream};
    EXPECT_EQ(text_of(gpu->predict(*context, rows, OutputKind::Value, out.data())), "done");
  }
  EXPECT_EQ(out, expected_);
}

TEST_F(Passes, AContextMayOutliveItsPredictor) {
  auto gpu = emulated({});
  const auto context = gpu->make_context();
  std::vector<float> out(kRows * 2);
  EXPECT_EQ(text_of(gpu->predict(*context, block(), OutputKind::Value, out.data())), "done");
  for (int i = 0; i < 20; ++i) {  // other buffers, which may get the first one's address
    gpu.reset();
    gpu = emulated({});
    EXPECT_EQ(text_of(gpu->predict(*context, block(), OutputKind::Value, out.data())),
              "the context belongs to another backend");
  }
}

/// An emulator that provides `pieces` pieces of page-locked memory and graphs, and then fails once.
class ShortOfMemory final : public Runtime {
 public:
  explicit ShortOfMemory(unsigned pieces, unsigned graphs = UINT32_MAX)
      : left_(pieces), graphs_left_(graphs) {}

  std::string describe() const override { return emulator_->describe(); }
  int ordinal() const override { return 0; }
  const DeviceLimits& limits() const override { return emulator_->limits(); }
  Result<std::unique_ptr<Queue>> make_queue() const override { return emulator_->make_queue(); }
  Result<std::unique_ptr<Queue>> queue_on(void* stream) const override { return emulator_->queue_on(stream); }
  Result<std::optional<std::uint64_t>> stream_id(void* stream) const override {
    return emulator_->stream_id(stream);
  }
  Result<std::unique_ptr<Graph>> capture(
      const std::function<Result<void>(Operations&)>& give) const override {
    return emulator_->capture([&](Operations& to) {
      if (graphs_left_-- == 0) throw std::bad_alloc();
      return give(to);
    });
  }
  Result<DeviceMemory> memory() const override { return emulator_->memory(); }
  Result<std::byte*> allocate(MemoryKind kind, std::size_t bytes) const override {
    if (kind == MemoryKind::Pinned && left_-- == 0) throw std::bad_alloc();
    return emulator_->allocate(kind, bytes);
  }
  void release(MemoryKind kind, std::byte* memory) const override { emulator_->release(kind, memory); }

 private:
  std::unique_ptr<Runtime> emulator_ = make_emulator_runtime({});
  mutable unsigned left_, graphs_left_;
};

/// The first slab is under way when allocating for the second fails.
TEST_F(Passes, AnExceptionLeavesNothingUnderWay) {
  const auto gpu = make_predictor(program(kTreesInGrid), std::make_unique<ShortOfMemory>(2), "it",
                                  {.slab_bytes = kRows * 12});
  ASSERT_TRUE(gpu.ok()) << gpu.error().text();
  auto context = (*gpu)->make_context();
  std::vector<float> out(kRows * 2);
  EXPECT_THROW(static_cast<void>((*gpu)->predict(*context, block(), OutputKind::Value, out.data())),
               std::bad_alloc);
  out.assign(out.size(), 7.0f);
  context.reset();
  EXPECT_EQ(out, std::vector<float>(kRows * 2, 7.0f));
}

TEST_F(Passes, AnExceptionWhileACallIsCapturedLeavesAUsableContext) {
  const auto gpu =
      make_predictor(program(kTreesInGrid), std::make_unique<ShortOfMemory>(UINT32_MAX, 0), "it");
  ASSERT_TRUE(gpu.ok()) << gpu.error().text();
  const auto context = (*gpu)->make_context();
  std::vector<float> out(kRows * 2);
  const auto predict = [&] {
    out.assign(out.size(), 0);
    return (*gpu)->predict(*context, block(), OutputKind::Value, out.data());
  };
  EXPECT_EQ(text_of(predict()), "done");
  EXPECT_THROW(static_cast<void>(predict()), std::bad_alloc);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(text_of(predict()), "done");
    EXPECT_EQ(out, expected_);
  }
}

TEST_F(Passes, RowsOnTheDeviceForEveryOutput) {
  const auto gpu = emulated({});
  const auto context = gpu->make_context(), host_context = host_->make_context();
  std::vector<float> apart;
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto row = rows_.begin() + static_cast<std::ptrdiff_t>(4 * i);
    apart.insert(apart.end(), row, row + 4);
    apart.insert(apart.end(), 3, 99.0f);
  }
  const DeviceRows rows{apart.data(), kRows, 7, 0, nullptr};  // the default stream
  std::vector<double> wide(kRows * 2), expected_wide(kRows * 2);
  EXPECT_EQ(text_of(gpu->predict_wide(*context, rows, OutputKind::Raw, wide.data())), "done");
  EXPECT_EQ(text_of(host_->predict_wide(*host_context, block(), OutputKind::Raw, expected_wide.data())),
            "done");
  EXPECT_EQ(wide, expected_wide);
  std::vector<std::int64_t> labels(kRows), expected_labels(kRows);
  EXPECT_EQ(text_of(gpu->predict_class(*context, rows, labels.data())), "done");
  EXPECT_EQ(text_of(host_->predict_class(*host_context, block(), expected_labels.data())), "done");
  EXPECT_EQ(labels, expected_labels);
  std::vector<std::int32_t> leaves(kRows * 6), expected_leaves(kRows * 6);
  EXPECT_EQ(text_of(gpu->predict_leaf(*context, rows, leaves.data())), "done");
  EXPECT_EQ(text_of(host_->predict_leaf(*host_context, block(), expected_leaves.data())), "done");
  EXPECT_EQ(leaves, expected_leaves);
}

/// Blocks copy rows to shared memory four values at a time if the address and the distance of rows allow it.
TEST_F(Passes, RowsOnTheDeviceAtAnyAddress) {
  const auto gpu = make_predictor(
      program("tile(batch, b0, b1, 32); reorder(b0, b1, tree); cache(b0); gpuDimension(b0, grid.x); "
              "gpuDimension(b1, block.x)"),
      make_emulator_runtime({}), "it");
  ASSERT_TRUE(gpu.ok()) << gpu.error().text();
  const auto context = (*gpu)->make_context();
  struct alignas(16) Values {
    float values[4];
  };
  for (const std::size_t stride : {4u, 5u, 6u, 8u})
    for (const std::size_t offset : {0u, 1u, 2u, 4u}) {
      std::vector<Values> memory(stride * kRows / 4 + 2);
      float* const first = reinterpret_cast<float*>(memory.data()) + offset;
      for (std::size_t i = 0; i < kRows; ++i) std::copy_n(rows_.data() + 4 * i, 4, first + stride * i);
      std::vector<float> out(kRows * 2);
      const DeviceRows rows{first, kRows, stride, 0, nullptr};
      EXPECT_EQ(text_of((*gpu)->predict(*context, rows, OutputKind::Value, out.data())), "done");
      EXPECT_EQ(out, expected_) << "stride " << stride << ", " << offset << " values on";
    }
}

TEST_F(Passes, RefusesRowsOfModelsThatTakeZeroForMissing) {
  Tree tree = support::split(0, 0.5, support::leaf(1), support::leaf(2));
  tree.nodes[0].missing = Missing::Zero;
  const Program zeros = test::compiled(support::model_of({tree}), kTreesInGrid);
  ASSERT_FALSE(zeros.zero_missing().empty());
  const auto gpu = make_predictor(zeros, make_emulator_runtime({}), "it");
  ASSERT_TRUE(gpu.ok()) << gpu.error().text();
  std::vector<float> out(kRows);
  const auto context = (*gpu)->make_context();
  const DeviceRows rows{rows_.data(), kRows, 4, 0, nullptr};
  EXPECT_EQ(
      text_of((*gpu)->predict(*context, rows, OutputKind::Raw, out.data())),
      "rows: lie on the device, and this model's zeros are missing values or its thresholds closer than "
      "float32 numbers, which the host sees to: pass rows of the host");
  EXPECT_EQ(text_of((*gpu)->predict(*context, block(), OutputKind::Raw, out.data())), "done");
}

/// Float64 rows go the same way as on the host, also where float32 cannot tell thresholds apart. A model with float64
/// thresholds refuses rows that lie on the device, because the host converts rows.
TEST_F(Passes, Float64RowsAreAsTheHosts) {
  Model model = test::small_forest();
  test::make_wide(model);
  const auto host = host_backend(test::compiled(model, ""));
  const auto gpu = make_predictor(test::compiled(model, kTreesInGrid), make_emulator_runtime({}), "it");
  ASSERT_TRUE(gpu.ok()) << gpu.error().text();
  std::vector<double> rows;
  for (const float x : test::small_rows(300, 3)) rows.push_back(static_cast<double>(x) + 1e-9);
  for (std::size_t i = 2; i < rows.size(); i += 3) rows[i] = 1 + static_cast<double>(i % 40) * 0.5e-9;
  const RowBlock block{rows.data(), 300, 3, RowType::Float64};
  const auto predicted = [&](const Predictor& predictor) {
    std::vector<double> out(300 * 3);
    EXPECT_EQ(text_of(predictor.predict_wide(*predictor.make_context(), block, OutputKind::Raw, out.data())),
              "done");
    return out;
  };
  EXPECT_EQ(predicted(**gpu), predicted(**host));
  std::vector<float> out(900);
  const DeviceRows on_device{rows_.data(), 300, 3, 0, nullptr};
  const auto context = (*gpu)->make_context();
  EXPECT_NE(text_of((*gpu)->predict(*context, on_device, OutputKind::Raw, out.data()))
                .find("thresholds closer than float32 numbers"),
            std::string::npos);
}

/// The host derives columns for rows in its memory; rows in the device's memory would lack them.
TEST_F(Passes, DerivedColumnsAreAsTheHosts) {
  const Model model = test::derived_model(11);
  const std::vector<double> rows = test::derived_rows(11, 300), codes = test::hashed_rows(model, rows);
  const auto host = host_backend(test::compiled(model, ""));
  const auto predicted = [](const Predictor& predictor, const RowBlock& block) {
    std::vector<float> out(block.count);
    EXPECT_EQ(text_of(predictor.predict(*predictor.make_context(), block, OutputKind::Raw, out.data())),
              "done");
    return out;
  };
  for (const std::string& schedule : {kTreesInGrid, print(schedule_by_name(model, "gpu").value())}) {
    SCOPED_TRACE(schedule);
    const auto gpu = make_predictor(test::compiled(model, schedule), make_emulator_runtime({}), "it");
    ASSERT_TRUE(gpu.ok()) << gpu.error().text();
    const RowBlock numbers{rows.data(), 300, 6, RowType::Float64};
    EXPECT_EQ(predicted(**gpu, numbers), predicted(**host, numbers));
    EXPECT_EQ(predicted(**gpu, {codes.data(), 300, 6, RowType::Float64, 1, true}),
              predicted(**host, numbers));
    std::vector<float> out(300);
    const auto context = (*gpu)->make_context();
    EXPECT_NE(text_of((*gpu)->predict(*context, DeviceRows{out.data(), 10, 6, 0, nullptr}, OutputKind::Raw,
                                      out.data()))
                  .find("derived columns"),
              std::string::npos);
    std::vector<double> wrong = rows;
    wrong[250 * 6 + 3] = 0.5;
    EXPECT_NE(text_of((*gpu)->predict(*context, RowBlock{wrong.data(), 300, 6, RowType::Float64},
                                      OutputKind::Raw, out.data()))
                  .find("row 250, column 3: 0.5 is not a category"),
              std::string::npos);
  }
}

TEST_F(Passes, RefusesRowsElsewhere) {
  const auto gpu = emulated({});
  const auto context = gpu->make_context(), host_context = host_->make_context();
  std::vector<float> out(kRows * 2);
  DeviceRows rows{rows_.data(), kRows, 4, 1, nullptr};
  EXPECT_EQ(text_of(gpu->predict(*context, rows, OutputKind::Raw, out.data())),
            "the rows are on device 1, the program is on device 0");
  rows.device = 0;
  EXPECT_EQ(text_of(gpu->predict(*context, rows, OutputKind::Raw, nullptr)),
            "a pointer of the rows, or the output, is null");
  EXPECT_EQ(text_of(host_->predict(*host_context, rows, OutputKind::Raw, out.data())),
            "the rows lie in a GPU's memory, which the host does not read: load the program into the GPU");
  rows.stride = 3;
  EXPECT_EQ(text_of(gpu->predict(*context, rows, OutputKind::Raw, out.data())),
            "rows of 3 values for a model of 4 features");
}

// --- the emulator's queues ---

TEST(EmulatorQueue, CopiesOnlyWhenItIsWaitedFor) {
  const auto runtime = make_emulator_runtime({});
  const auto queue = runtime->make_queue().value();
  std::byte* const memory = *runtime->allocate(MemoryKind::Device, 1);
  auto staged = std::byte{1}, back = std::byte{0};
  EXPECT_TRUE(queue->upload(memory, &staged, 1).ok());
  EXPECT_TRUE(queue->mark().ok());
  staged = std::byte{2};  // too early
  EXPECT_TRUE(queue->wait().ok());
  EXPECT_TRUE(queue->download(&back, memory, 1).ok());
  EXPECT_TRUE(queue->wait().ok());  // returns at once: there is no new mark
  EXPECT_EQ(back, std::byte{0});
  EXPECT_TRUE(queue->mark().ok());
  EXPECT_TRUE(queue->wait().ok());
  EXPECT_EQ(back, std::byte{2});
  runtime->release(MemoryKind::Device, memory);
}

TEST(EmulatorRuntime, MemoryThatNothingHasWrittenIsPoison) {
  const auto runtime = make_emulator_runtime({});
  for (const MemoryKind kind : {MemoryKind::Device, MemoryKind::Pinned}) {
    // Reused memory still has its earlier content, unless it is poisoned again.
    for (unsigned i = 0; i < 10; ++i) {
      std::byte* const memory = *runtime->allocate(kind, 1000);
      EXPECT_EQ(std::count(memory, memory + 1000, std::byte{emulator::kPoison}), 1000);
      std::fill_n(memory, 1000, std::byte{});
      runtime->release(kind, memory);
    }
  }
}

}  // namespace
}  // namespace forestvm::kernels::test_passes
