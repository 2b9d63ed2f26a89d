// The runtime of real GPUs over a vendor's runtime that is written here: what it calls, on which device, and
// what it makes of errors. The vendor's memory is the host's; it does at once what it is given, and runs no
// kernel.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/gpu/runtime.hpp"

namespace forestvm::kernels {
namespace {

struct Calls {
  int devices = 2;
  int current = 1;  ///< device of the calling thread
  std::size_t free = 1000;
  std::string fails;              ///< the call that does
  std::vector<std::string> made;  ///< copies, launches and waits
};
Calls* calls = nullptr;

const char kArrayKernel = 0, kReorgKernel = 0;

struct FakeApi {
  enum class Status { Success, OutOfMemory, Failed };
  using Stream = int*;
  using Event = int*;

  static constexpr const char* kName = "Fake";
  static constexpr Status kSuccess = Status::Success;
  static constexpr Status kOutOfMemory = Status::OutOfMemory;
  static constexpr int kThreads = 512, kSharedBytes = 4096, kGrid[] = {70, 80, 90};

  static const char* text(Status status) {
    return status == Status::OutOfMemory ? "there is no memory" : "it is broken";
  }
  static void clear_error() {}

  static Status called(const std::string& name) {
    return calls->fails == name ? Status::Failed : Status::Success;
  }
  static Status noted(const std::string& name, const std::string& what) {
    calls->made.push_back(name + what + " on " + std::to_string(calls->current));
    return called(name);
  }

  static Status count_devices(int* count) {
    *count = calls->devices;
    return called("count");
  }
  static Status get_device(int* device) {
    *device = calls->current;
    return Status::Success;
  }
  static Status set_device(int device) {
    calls->current = device;
    return called("set");
  }
  static Status attribute(int* value, int attribute, int) {
    *value = attribute;
    return called("attribute");
  }
  static Status describe(std::string* text, int device) {
    *text = "number " + std::to_string(device);
    return called("describe");
  }
  static Status driver(std::string* text) {
    *text = "1.5";
    return Status::Success;
  }
  static Status memory(std::size_t* free, std::size_t* total) {
    *free = calls->free;
    *total = 3u << 20;
    return called("memory");
  }
  static Status allocate(void** memory, std::size_t bytes) {
    if (bytes > calls->free) return Status::OutOfMemory;
    const Status status = called("allocate");
    if (status == Status::Success) *memory = ::operator new(bytes);
    return status;
  }
  static Status release(void* memory) {
    ::operator delete(memory);
    return Status::Success;
  }
  static Status allocate_pinned(void** memory, std::size_t bytes) { return allocate(memory, bytes); }
  static Status release_pinned(void* memory) { return release(memory); }
  static Status create_stream(Stream* stream) {
    const Status status = called("stream");
    if (status == Status::Success) *stream = new int(0);
    return status;
  }
  static Status destroy_stream(const int* stream) {
    delete stream;
    return Status::Success;
  }
  static Status create_event(Event* event) {
    const Status status = called("event");
    if (status == Status::Success) *event = new int(0);
    return status;
  }
  static Status destroy_event(const int* event) {
    delete event;
    return Status::Success;
  }
  static Status record(Event, Stream) { return noted("record", ""); }
  static Status wait(Event) { return noted("wait", ""); }
  static Status upload(void* to, const void* from, std::size_t bytes, Stream) {
    std::memcpy(to, from, bytes);
    return noted("upload", "");
  }
  static Status download(void* to, const void* from, std::size_t bytes, Stream) {
    std::memcpy(to, from, bytes);
    return noted("download", "");
  }
  static Status kernel_limits(std::uint32_t* threads, std::uint32_t* shared_bytes, const void* kernel) {
    *threads = kernel == &kArrayKernel ? 256 : 128;
    *shared_bytes = kernel == &kArrayKernel ? 0 : 96;
    return called("limits");
  }
  static Status allow_shared_bytes(const void*, int bytes) { return noted("allow ", std::to_string(bytes)); }
  static Status launch(const void* kernel, const std::uint32_t* extent, void** arguments,
                       std::size_t shared_bytes, Stream) {
    const auto* const launch = static_cast<const Launch*>(arguments[0]);
    return noted("launch", std::string(kernel == &kArrayKernel ? " array" : " reorg") + " of " +
                               std::to_string(extent[0]) + " x " + std::to_string(extent[3]) + ", " +
                               std::to_string(shared_bytes) + " bytes, " +
                               std::to_string(launch->pass.row_count) + " rows");
  }
};

using Gpu = GpuRuntime<FakeApi>;

template <class T>
std::string text_of(const Result<T>& result) {
  return result.ok() ? "done" : result.error().text();
}

class GpuRuntimes : public testing::Test {
 protected:
  GpuRuntimes() { calls = &calls_; }
  ~GpuRuntimes() override { calls = nullptr; }
  GpuRuntimes(const GpuRuntimes&) = delete;
  GpuRuntimes& operator=(const GpuRuntimes&) = delete;

  Calls calls_;
};

TEST_F(GpuRuntimes, DescribeTheirDevices) {
  EXPECT_EQ(*Gpu::devices(), (std::vector<std::string>{"Fake device 0: number 0, 3 MiB, driver 1.5",
                                                       "Fake device 1: number 1, 3 MiB, driver 1.5"}));
  const auto gpu = Gpu::open(0).value();
  EXPECT_EQ(gpu->describe(), "Fake device 0: number 0, 3 MiB, driver 1.5");
  EXPECT_EQ(gpu->limits().threads, 512u);
  EXPECT_EQ(gpu->limits().shared_bytes, 4096u - 96u);  // what no kernel takes for itself
  EXPECT_EQ(gpu->limits().grid, (std::array<std::uint32_t, 3>{70, 80, 90}));
  ASSERT_EQ(gpu->limits().kernels.size(), 2u);
  EXPECT_EQ(gpu->limits().kernels[0].layout, Layout::Reorg);
  EXPECT_EQ(gpu->limits().kernels[0].threads, 128u);
  EXPECT_EQ(calls_.made, (std::vector<std::string>{"allow 4000 on 0", "allow 4000 on 0"}));
  EXPECT_EQ(calls_.current, 1) << "the calling thread's device";
}

TEST_F(GpuRuntimes, SayWhatIsAbsent) {
  EXPECT_EQ(text_of(Gpu::open(2)), "no Fake device 2: there are those from 0 to 1");
  calls_.devices = 1;
  EXPECT_EQ(text_of(Gpu::open(-1)), "no Fake device -1: there is one, 0");
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
  EXPECT_EQ(text_of(queue->wait()), "done");  // for nothing
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
  calls_.fails = "set";
  EXPECT_EQ(text_of(gpu->memory()), "Fake: choosing the device: it is broken");
  calls_.fails = "limits";
  calls_.current = 0;
  EXPECT_EQ(text_of(Gpu::open(0)), "Fake: loading the kernels: it is broken");
}

}  // namespace

std::span<const CompiledKernel> compiled_kernels() {
  static constexpr CompiledKernel kKernels[] = {{Layout::Reorg, &kReorgKernel},
                                                {Layout::Array, &kArrayKernel}};
  return kKernels;
}

}  // namespace forestvm::kernels
