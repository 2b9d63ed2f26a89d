// Repeated calls of one shape: the second call makes a graph of their operations. The GPU is the one of
// fake_gpu.hpp, whose kernels the emulator runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>

#include "fake_gpu.hpp"
#include "kernels/backend/context.hpp"
#include "kernels/backend/predictor.hpp"
#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::kernels::test_graphs {
namespace {

constexpr std::size_t kRows = 300;
constexpr std::size_t kRowBytes = (4 + 2) * sizeof(float);  ///< bytes that the host copies per row

using Texts = std::vector<std::string>;

class Graphs : public testing::Test {
 protected:
  Graphs() {
    calls_.free = std::size_t{1} << 40;
    calls_.runs_kernels = true;
    for (std::size_t i = 0; i < 4 * kRows; ++i) rows_.push_back(static_cast<float>(i * 7 % 31) * 0.3f - 3);
    for (const float x : rows_) others_.push_back(1 - x);
    expected_ = predicted_by_host(rows_);
    others_expected_ = predicted_by_host(others_);
  }

  /// Compiles a program with sums in global memory and several launches, or with one launch.
  Program program(bool several = true) const {
    const std::string grid = several ? "gpuDimension(t0, grid.z); " : "";
    return test::compiled(model_,
                          "tile(batch, b0, b1, 8); tile(tree, t0, t1, 2); reorder(b0, t0, b1, t1); " + grid +
                              "gpuDimension(b0, grid.x); gpuDimension(b1, block.x)",
                          Contract::Reproducible);
  }

  static std::unique_ptr<Predictor> on_gpu(const Program& program, const PassBounds& bounds = {}) {
    auto predictor = make_predictor(program, Gpu::open(0).value(), "it", bounds);
    EXPECT_TRUE(predictor.ok()) << (predictor.ok() ? "" : predictor.error().text());
    return std::move(predictor).value();
  }

  std::vector<float> predicted_by_host(const std::vector<float>& rows) const {
    const auto host = host_backend(test::compiled(model_, "", Contract::Reproducible)).value();
    const auto context = host->make_context();
    std::vector<float> out(kRows * 2);
    EXPECT_TRUE(host->predict(*context, RowBlock{rows.data(), kRows, 4}, OutputKind::Raw, out.data()).ok());
    return out;
  }

  /// Predicts, compares with the host, and returns the operations that the GPU was asked for.
  Texts call(const Predictor& gpu, Context& context, bool others = false, std::size_t count = kRows) {
    const std::vector<float>& rows = others ? others_ : rows_;
    std::vector<float> out(count * 2);
    const Texts made = call(gpu, context, RowBlock{rows.data(), count, 4}, out.data());
    expect_predicted(out, others);
    return made;
  }

  Texts call(const Predictor& gpu, Context& context, const AnyRows& rows, float* out) {
    calls_.made.clear();
    const auto done = gpu.predict(context, rows, OutputKind::Raw, out);
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
    return std::exchange(calls_.made, {});
  }

  void expect_predicted(const std::vector<float>& out, bool others) const {
    const std::vector<float>& expected = others ? others_expected_ : expected_;
    EXPECT_TRUE(std::equal(out.begin(), out.end(), expected.begin()));
  }

  static std::ptrdiff_t count_of(const Texts& made, const std::string& begin) {
    return std::count_if(made.begin(), made.end(),
                         [&](const std::string& text) { return text.starts_with(begin); });
  }
  static bool is_given_one_by_one(const Texts& made) {
    return count_of(made, "launch") > 0 && count_of(made, "replay") + count_of(made, "instantiate") == 0;
  }

  FakeCalls calls_;
  const Model model_ = support::model_of(support::six_trees(), 2);
  std::vector<float> rows_, others_, expected_, others_expected_;
};

TEST_F(Graphs, AreCapturedByTheSecondCallAndReplayed) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  const Texts first = call(*gpu, *context);
  EXPECT_TRUE(is_given_one_by_one(first));
  const auto operations = std::to_string(count_of(first, "launch") + 2);
  EXPECT_GT(count_of(first, "launch"), 1);
  EXPECT_EQ(call(*gpu, *context, true),
            (Texts{"instantiate " + operations + " on 0", "replay " + operations + " on 0", "record on 0",
                   "wait on 0"}));
  for (const bool others : {false, true})
    EXPECT_EQ(call(*gpu, *context, others),
              (Texts{"replay " + operations + " on 0", "record on 0", "wait on 0"}));
}

TEST_F(Graphs, OfRowsOnTheDeviceFollowThem) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  std::vector<float> out(kRows * 2), elsewhere(kRows * 2), apart;
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto row = rows_.begin() + static_cast<std::ptrdiff_t>(4 * i);
    apart.insert(apart.end(), row, row + 4);
    apart.push_back(99);
  }
  int stream = 0, other_stream = 0;
  const DeviceRows rows{rows_.data(), kRows, 4, 0, &stream}, others{others_.data(), kRows, 4, 0, &stream},
      strided{apart.data(), kRows, 5, 0, &stream}, elsewhere_given{rows_.data(), kRows, 4, 0, &other_stream};
  const auto launches = count_of(call(*gpu, *context, rows, out.data()), "launch");
  expect_predicted(out, false);
  const std::string graph = std::to_string(launches) + " on 0";
  EXPECT_EQ(call(*gpu, *context, rows, out.data()),
            (Texts{"instantiate " + graph, "replay " + graph, "record on 0"}));
  EXPECT_EQ(call(*gpu, *context, rows, out.data()), (Texts{"replay " + graph, "record on 0"}));
  expect_predicted(out, false);
  Texts changed(static_cast<std::size_t>(launches), "set launch on 0");
  changed.insert(changed.end(), {"replay " + graph, "record on 0"});
  EXPECT_EQ(call(*gpu, *context, others, out.data()), changed);
  expect_predicted(out, true);
  EXPECT_EQ(call(*gpu, *context, others, elsewhere.data()), changed);
  expect_predicted(elsewhere, true);
  EXPECT_EQ(call(*gpu, *context, strided, elsewhere.data()), changed);
  expect_predicted(elsewhere, false);
  // Another stream waits for the previous call.
  changed.insert(changed.begin(), "wait on 0");
  out.assign(out.size(), 0);
  EXPECT_EQ(call(*gpu, *context, elsewhere_given, out.data()), changed);
  expect_predicted(out, false);
}

/// Calls that differ only in the distance from row to row.
TEST_F(Graphs, FollowTheDistanceOfRows) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  std::vector<float> out(kRows);
  DeviceRows rows{rows_.data(), kRows / 2, 4, 0, nullptr};
  for (const std::size_t apart : {1u, 1u, 1u, 2u, 1u, 2u}) {
    rows.stride = 4 * apart;
    call(*gpu, *context, rows, out.data());
    for (std::size_t i = 0; i < kRows; ++i) ASSERT_EQ(out[i], expected_[i / 2 * 2 * apart + i % 2]) << apart;
  }
}

TEST_F(Graphs, OneLaunchIsNone) {
  const auto gpu = on_gpu(program(false));
  const auto context = gpu->make_context();
  std::vector<float> out(kRows * 2);
  for (unsigned i = 0; i < 3; ++i) {
    const Texts made = call(*gpu, *context, DeviceRows{rows_.data(), kRows, 4, 0, nullptr}, out.data());
    EXPECT_EQ(made.size(), 2u);
    EXPECT_TRUE(is_given_one_by_one(made));
    expect_predicted(out, false);
  }
}

TEST_F(Graphs, OfShorterLastSlabsStayToo) {
  const auto gpu = on_gpu(program(), {.slab_bytes = 128 * kRowBytes});
  const auto context = gpu->make_context();
  EXPECT_TRUE(is_given_one_by_one(call(*gpu, *context))) << "a shape that one call repeats";
  EXPECT_EQ(count_of(call(*gpu, *context, true), "instantiate"),
            3);  // whole slabs in both lanes, and the last slab
  for (const bool others : {false, true}) {
    const Texts made = call(*gpu, *context, others);
    EXPECT_EQ(count_of(made, "replay"), 3);
    EXPECT_EQ(count_of(made, "instantiate") + count_of(made, "launch"), 0);
  }
}

TEST_F(Graphs, OfOtherOutputsAreOthers) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  std::vector<double> wide(kRows * 2);
  for (unsigned i = 0; i < 3; ++i) {
    call(*gpu, *context);
    calls_.made.clear();
    const RowBlock rows{rows_.data(), kRows, 4};
    EXPECT_TRUE(gpu->predict_wide(*context, rows, OutputKind::Raw, wide.data()).ok());
    EXPECT_EQ(count_of(calls_.made, "replay"), i == 0 ? 0 : 1);
    EXPECT_EQ(std::vector<float>(wide.begin(), wide.end()), expected_);
  }
}

TEST_F(Graphs, AreDroppedWhereMemoryGrows) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  for (unsigned i = 0; i < 2; ++i) call(*gpu, *context, i == 0, 100);
  EXPECT_EQ(count_of(call(*gpu, *context, true, kRows), "destroy graph"), 1);
  const Texts again = call(*gpu, *context, false, 100);
  EXPECT_EQ(count_of(again, "instantiate"), 1);
  EXPECT_EQ(count_of(again, "replay"), 1);
  EXPECT_EQ(count_of(call(*gpu, *context, true, 100), "instantiate"), 0);
}

TEST_F(Graphs, OfTheShapesUsedLastAreKept) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  const auto call_all = [&](std::size_t shapes) {
    Texts made;
    for (std::size_t shape = 0; shape < shapes; ++shape) {
      const Texts more = call(*gpu, *context, shape % 2 == 0, kRows - shape);
      made.insert(made.end(), more.begin(), more.end());
    }
    return made;
  };
  for (unsigned i = 0; i < 2; ++i) call_all(kKeptPasses);
  EXPECT_EQ(count_of(call_all(kKeptPasses), "replay"), kKeptPasses);
  // With one shape more than graphs are kept, called in turn, each shape comes back after its graph was dropped.
  const Texts dropped = call_all(kKeptPasses + 1);
  EXPECT_EQ(count_of(dropped, "replay"), kKeptPasses);
  EXPECT_EQ(count_of(dropped, "destroy graph"), 1);
  EXPECT_TRUE(is_given_one_by_one(call_all(kKeptPasses + 1)));
}

/// The rows are on the device, and nobody has waited for the call.
TEST_F(Graphs, AreWaitedForBeforeTheyAreDropped) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  std::vector<float> out(kRows * 2);
  for (unsigned i = 0; i < 2; ++i)
    call(*gpu, *context, DeviceRows{rows_.data(), kRows, 4, 0, nullptr}, out.data());
  Texts made;
  for (std::size_t shape = 0; shape < kKeptPasses; ++shape) {
    const Texts more = call(*gpu, *context, false, kRows - shape);
    made.insert(made.end(), more.begin(), more.end());
  }
  EXPECT_EQ(count_of(made, "destroy graph"), 1);  // the fake API checks that the graph was waited for
}

/// Graphs take device memory too; when it runs out, the graphs of all lanes are freed.
TEST_F(Graphs, EndWhereMemoryRunsOut) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  std::vector<float> out(kRows * 2);
  const DeviceRows rows{rows_.data(), kRows, 4, 0, nullptr};
  for (unsigned i = 0; i < 2; ++i) call(*gpu, *context, rows, out.data());
  calls_.fails = "allocate";
  const auto failed = gpu->predict(*context, RowBlock{rows_.data(), kRows, 4}, OutputKind::Raw, out.data());
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::Environment);
  EXPECT_EQ(count_of(calls_.made, "destroy graph"), 1);
  calls_.fails.clear();
  for (unsigned i = 0; i < 3; ++i) {
    call(*gpu, *context, i == 1);
    EXPECT_EQ(count_of(call(*gpu, *context, rows, out.data()), "instantiate"), i == 0 ? 1 : 0);
    expect_predicted(out, false);
  }
}

TEST_F(Graphs, ThatCannotBeMadeAreNotNeeded) {
  for (const char* const fails :
       {"create graph", "add upload", "add launch", "add download", "instantiate"}) {
    const auto gpu = on_gpu(program());
    const auto context = gpu->make_context();
    call(*gpu, *context);
    calls_.fails = fails;
    EXPECT_EQ(count_of(call(*gpu, *context, true), "launch"), 3) << fails;
    calls_.fails.clear();
    EXPECT_TRUE(is_given_one_by_one(call(*gpu, *context))) << "tried again after " << fails;
    call(*gpu, *context, false, 10);
    EXPECT_EQ(count_of(call(*gpu, *context, true, 10), "replay"), 1);  // another shape
  }
}

TEST_F(Graphs, ThatDoNotFollowTheirRowsAreNotReplayed) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  std::vector<float> out(kRows * 2);
  const DeviceRows rows{rows_.data(), kRows, 4, 0, nullptr}, others{others_.data(), kRows, 4, 0, nullptr};
  for (unsigned i = 0; i < 2; ++i) call(*gpu, *context, rows, out.data());
  calls_.fails = "set launch";
  EXPECT_EQ(count_of(call(*gpu, *context, others, out.data()), "launch"), 3);
  expect_predicted(out, true);
  calls_.fails.clear();
  EXPECT_TRUE(is_given_one_by_one(call(*gpu, *context, rows, out.data())));
  expect_predicted(out, false);
}

/// After the exception the graph's first launches have the new rows and its last launch has the old ones.
TEST_F(Graphs, AreNotReplayedAfterAnExceptionChangedThemInPart) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  std::vector<float> out(kRows * 2);
  const DeviceRows rows{rows_.data(), kRows, 4, 0, nullptr}, others{others_.data(), kRows, 4, 0, nullptr};
  for (unsigned i = 0; i < 2; ++i) call(*gpu, *context, rows, out.data());
  calls_.launches_until_exception = 3;
  EXPECT_THROW(static_cast<void>(gpu->predict(*context, others, OutputKind::Raw, out.data())),
               std::bad_alloc);
  call(*gpu, *context, rows, out.data());
  expect_predicted(out, false);
}

TEST_F(Graphs, ThatFailLeaveAUsableContext) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  call(*gpu, *context);
  std::vector<float> out(kRows * 2);
  for (unsigned i = 0; i < 2; ++i) {
    calls_.fails = "replay";
    const auto done = gpu->predict(*context, RowBlock{rows_.data(), kRows, 4}, OutputKind::Raw, out.data());
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().text(), "Fake: launching a graph: it is broken");
    calls_.fails.clear();
    EXPECT_EQ(count_of(call(*gpu, *context, true), "replay"), 1);
  }
}

TEST_F(Graphs, LeaveStreamsThatAreCapturedAlone) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  std::vector<float> out(kRows * 2);
  int stream = 0;
  const DeviceRows rows{rows_.data(), kRows, 4, 0, &stream};
  calls_.captured = {&stream};
  const auto refused = gpu->predict(*context, rows, OutputKind::Raw, out.data());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::Usage);
  EXPECT_EQ(refused.error().text(),
            "the stream is captured, and the context has no memory for a call of so many rows: let it make "
            "one before that is not captured");
  calls_.captured = {};
  for (unsigned i = 0; i < 2; ++i) call(*gpu, *context, rows, out.data());
  calls_.captured = {&stream};
  const Texts made = call(*gpu, *context, rows, out.data());
  EXPECT_EQ(made.front(), "wait on 0") << "for the call before";
  EXPECT_EQ(count_of(made, "launch"), 3);
  EXPECT_EQ(made.size(), 4u);
  calls_.captured = {};
  EXPECT_EQ(call(*gpu, *context, rows, out.data()), (Texts{"replay 3 on 0", "record on 0"}));
  calls_.fails = "is capturing";
  const auto failed = gpu->predict(*context, rows, OutputKind::Raw, out.data());
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().text(), "Fake: asking whether the stream is captured: it is broken");
  calls_.fails.clear();
}

/// PyTorch captures on a stream of its own, after calls on another stream in which the context allocated its
/// memory.
TEST_F(Graphs, LeaveACaptureOnAnotherStreamAlone) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  std::vector<float> out(kRows * 2);
  int stream = 0, other = 0;
  DeviceRows rows{rows_.data(), kRows, 4, 0, &stream};
  for (unsigned i = 0; i < 2; ++i) call(*gpu, *context, rows, out.data());
  calls_.captured = {&other};
  rows.stream = &other;
  const Texts made = call(*gpu, *context, rows, out.data());
  EXPECT_EQ(made.front(), "wait on 0") << "for the call before, which uses the context's memory";
  EXPECT_EQ(count_of(made, "launch"), 3);
  EXPECT_EQ(made.size(), 4u);
  rows.count = kRows + 1;
  EXPECT_FALSE(gpu->predict(*context, rows, OutputKind::Raw, out.data()).ok()) << "memory for more";
  EXPECT_FALSE(calls_.capture_is_broken);
  calls_.captured = {};
}

/// A stream does not wait for the work of a destroyed stream that had the same address.
TEST_F(Graphs, AStreamThatIsMadeAgainIsAnother) {
  const auto gpu = on_gpu(program());
  const auto context = gpu->make_context();
  std::vector<float> out(kRows * 2);
  int stream = 0;
  const DeviceRows rows{rows_.data(), kRows, 4, 0, &stream};
  call(*gpu, *context, rows, out.data());
  EXPECT_EQ(count_of(call(*gpu, *context, rows, out.data()), "wait"), 0);
  ++calls_.made_again[&stream];
  EXPECT_EQ(call(*gpu, *context, rows, out.data()).front(), "wait on 0");
  EXPECT_EQ(count_of(call(*gpu, *context, rows, out.data()), "wait"), 0);
}

}  // namespace
}  // namespace forestvm::kernels::test_graphs
