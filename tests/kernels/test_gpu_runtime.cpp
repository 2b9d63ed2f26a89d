// The runtime of real GPUs, over the fake vendor runtime: which functions it calls, on which device, and how
// it reports errors.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "fake_gpu.hpp"

namespace forestvm::kernels::test_gpu_runtime {
namespace {

template <class T>
std::string text_of(const Result<T>& result) {
  return result.ok() ? "done" : result.error().text();
}

class GpuRuntimes : public testing::Test {
 protected:
  FakeCalls calls_;
};

TEST_F(GpuRuntimes, DescribeTheirDevices) {
  EXPECT_EQ(*Gpu::devices(), (std::vector<std::string>{"Fake device 0: number 0, 3 MiB, driver 1.5",
                                                       "Fake device 1: number 1, 3 MiB, driver 1.5"}));
  EXPECT_EQ(calls_.contexts, std::set<int>{}) << "devices that are listed only";
  const auto gpu = Gpu::open(0).value();
  EXPECT_EQ(gpu->describe(), "Fake device 0: number 0, 3 MiB, driver 1.5");
  EXPECT_EQ(gpu->limits().threads, 512u);
  EXPECT_EQ(gpu->limits().shared_bytes, 4096u - 96u);  // without the bytes that every kernel takes for itself
  EXPECT_EQ(gpu->limits().grid, (std::array<std::uint32_t, 3>{70000, 80, 90}));
  ASSERT_EQ(gpu->limits().kernels.size(), 3u);
  EXPECT_EQ(gpu->limits().kernels[0].layout, Layout::Reorg);
  EXPECT_EQ(gpu->limits().kernels[0].threads, 128u);
  EXPECT_EQ(calls_.made, std::vector<std::string>(4, "allow 4000 on 0"));
  EXPECT_EQ(calls_.current, 1) << "the calling thread's device";
}

TEST_F(GpuRuntimes, SayWhatIsAbsent) {
  EXPECT_EQ(text_of(Gpu::open(2)), "no Fake device 2: the devices are 0 to 1");
  calls_.devices = 1;
  EXPECT_EQ(text_of(Gpu::open(-1)), "no Fake device -1: the only device is 0");
  calls_.devices = 0;
  EXPECT_EQ(text_of(Gpu::open(0)), "no Fake device");
  calls_.fails = "count";
  EXPECT_EQ(text_of(Gpu::open(0)), "no Fake device: it is broken");
  EXPECT_EQ(text_of(Gpu::devices()), "no Fake device: it is broken");
}

TEST_F(GpuRuntimes, CopyAndLaunchOnTheirDevice) {
  const auto gpu = Gpu::open(0).value();
  const auto queue = gpu->make_queue().value();
  calls_.made.clear();
  std::byte* const memory = gpu->allocate(MemoryKind::Device, 4).value();
  int value = 7, back = 0;
  LinkedPhase phase;
  phase.extent = {5, 1, 1, 64, 1, 1};
  phase.shared_bytes = 12;
  phase.layout = Layout::Array;
  Launch launch{};
  launch.pass.row_count = 320;
  EXPECT_EQ(text_of(queue->wait()), "done");  // there was nothing to wait for
  EXPECT_EQ(text_of(queue->upload(memory, &value, 4)), "done");
  EXPECT_EQ(text_of(queue->launch(phase, launch)), "done");
  phase.layout.reset();
  EXPECT_EQ(text_of(queue->launch(phase, launch)), "done");
  EXPECT_EQ(text_of(queue->download(&back, memory, 4)), "done");
  EXPECT_EQ(text_of(queue->mark()), "done");
  EXPECT_EQ(text_of(queue->wait()), "done");
  EXPECT_EQ(text_of(queue->wait()), "done");
  EXPECT_EQ(back, 7);
  EXPECT_EQ(calls_.made,
            (std::vector<std::string>{"upload on 0", "launch array of 5 x 64, 12 bytes, 320 rows on 0",
                                      "launch reorg of 5 x 64, 12 bytes, 320 rows on 0", "download on 0",
                                      "record on 0", "wait on 0"}));
  EXPECT_EQ(calls_.current, 1);
  gpu->release(MemoryKind::Device, memory);
}

TEST_F(GpuRuntimes, SayWhatFailed) {
  const auto gpu = Gpu::open(0).value();
  EXPECT_EQ(text_of(gpu->allocate(MemoryKind::Device, 1001)),
            "out of memory: 1001 bytes asked for, the device has 1000 of 3145728 free");
  EXPECT_EQ(text_of(gpu->allocate(MemoryKind::Pinned, 1001)),
            "Fake: allocating 1001 bytes of pinned memory: there is no memory");
  const auto queue = gpu->make_queue().value();
  calls_.fails = "launch";
  LinkedPhase phase;
  phase.extent = {5, 1, 1, 64, 1, 1};
  EXPECT_EQ(text_of(queue->launch(phase, Launch{})),
            "Fake: launching blocks of 64 threads and 0 bytes of shared memory: it is broken");
  EXPECT_EQ(queue->launch(phase, Launch{}).error().code, ErrorCode::Environment);
  calls_.fails = "wait";
  EXPECT_EQ(text_of(queue->mark()), "done");
  EXPECT_EQ(text_of(queue->wait()), "Fake: waiting for the device: it is broken");
  calls_.fails = "stream";
  EXPECT_EQ(text_of(gpu->make_queue()), "Fake: creating a stream: it is broken");
  calls_.fails = "enter";
  EXPECT_EQ(text_of(gpu->memory()), "Fake: choosing the device: it is broken");
  calls_.fails = "limits";
  calls_.current = 0;
  EXPECT_EQ(text_of(Gpu::open(0)), "Fake: loading the kernels: it is broken");
}

TEST_F(GpuRuntimes, UseNoDeviceButTheirs) {
  const auto gpu = Gpu::open(0).value();
  {
    const auto queue = gpu->make_queue().value();
    EXPECT_EQ(text_of(queue->mark()), "done");
    EXPECT_EQ(text_of(queue->wait()), "done");
    gpu->release(MemoryKind::Device, gpu->allocate(MemoryKind::Device, 4).value());
    EXPECT_TRUE(gpu->memory().ok());
  }
  EXPECT_EQ(calls_.contexts, std::set<int>{0});
  EXPECT_EQ(calls_.current, 1);
}

/// The captured stream is not the runtime's, and may belong to another thread.
TEST_F(GpuRuntimes, BreakNoCaptureThatIsUnderWay) {
  const int stream = 0;
  calls_.captured = {&stream};
  const auto gpu = Gpu::open(0).value();
  const auto queue = gpu->make_queue().value();
  std::byte* const memory = gpu->allocate(MemoryKind::Device, 4).value();
  EXPECT_TRUE(gpu->memory().ok());
  EXPECT_EQ(text_of(queue->mark()), "done");
  EXPECT_EQ(text_of(queue->wait()), "done");
  const auto graph = gpu->capture([&](Operations& to) { return to.upload(memory, &stream, sizeof stream); });
  ASSERT_TRUE(graph.ok()) << graph.error().text();
  EXPECT_EQ(text_of(queue->replay(**graph)), "done");
  EXPECT_EQ(text_of(queue->mark()), "done");
  EXPECT_EQ(text_of(queue->wait()), "done");
  gpu->release(MemoryKind::Device, memory);
}

}  // namespace

}  // namespace forestvm::kernels::test_gpu_runtime
