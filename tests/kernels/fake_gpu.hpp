// A vendor's runtime for tests of gpu/runtime.hpp: it records what it is asked to do, and does it at once.
// Its memory is the host's; kernels run on the emulator if a test asks for that. Graphs keep copies of their
// arguments, as CUDA's do. It keeps two of CUDA's rules: a call that uses a device makes a context there; and
// while a stream is captured in the global mode, a call that allocates, frees or waits fails and breaks the
// capture, unless its thread is in the mode that keeps its calls apart from captures.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernels/gpu/runtime.hpp"
#include "kernels/link/launch.hpp"

namespace forestvm::kernels {

/// The settings and records of the vendor's runtime. One test uses it at a time; at its end nothing may be
/// left.
struct FakeCalls {
  FakeCalls() { current_calls = this; }
  ~FakeCalls() {
    EXPECT_EQ(alive, 0) << "streams, events, graphs and memory";
    EXPECT_FALSE(capture_is_broken);
    EXPECT_FALSE(beside_captures) << "the calling thread's mode";
    current_calls = nullptr;
  }
  FakeCalls(const FakeCalls&) = delete;
  FakeCalls& operator=(const FakeCalls&) = delete;

  int devices = 2;
  int current = 1;  ///< device of the calling thread
  std::size_t free = 1000;
  std::string fails;                      ///< name of the call that fails
  unsigned launches_until_exception = 0;  ///< calls of set_launch until one throws; 0: none throws
  std::vector<std::string> made;          ///< record of the copies, launches and waits
  bool runs_kernels = false;
  std::set<int> contexts;         ///< devices that have a context
  std::set<const int*> captured;  ///< streams that their owners capture
  bool beside_captures = false;   ///< capture mode of the calling thread
  bool capture_is_broken = false;
  std::map<const int*, std::uint64_t> made_again;  ///< number of times that an address was used again
  int alive = 0;                                   ///< number of objects made and not destroyed
  std::size_t replays = 0;                         ///< number of replays of graphs
  std::map<const int*, std::size_t> waited;        ///< last replay on each stream that was waited for

  inline static FakeCalls* current_calls = nullptr;
};

/// An operation in a graph.
struct FakeNode {
  enum class Kind { Upload, Download, Launch } kind = Kind::Upload;
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  const void* kernel = nullptr;
  std::array<std::uint32_t, kDimensions> extent{};
  Launch argument{};
  std::uint32_t shared_bytes = 0;
};

struct FakeGraph {
  std::vector<std::unique_ptr<FakeNode>> nodes;
};

struct FakeInstantiated {
  std::vector<FakeNode*> originals;
  std::vector<FakeNode> nodes;
  const int* stream = nullptr;  ///< stream of the last replay
  std::size_t last_replay = 0;
};

struct FakeEvent {
  const int* stream = nullptr;
  std::size_t replays = 0;  ///< number of replays before the event
};

struct FakeApi {
  enum class Status { Success, OutOfMemory, Failed };
  using Stream = int*;
  using Event = FakeEvent*;
  using Graph = FakeGraph*;
  using Node = FakeNode*;
  using InstantiatedGraph = FakeInstantiated*;
  using CaptureMode = bool;  ///< true: the thread's calls are kept apart from captures

  static constexpr const char* kName = "Fake";
  static constexpr Status kSuccess = Status::Success;
  static constexpr Status kOutOfMemory = Status::OutOfMemory;
  static constexpr CaptureMode kBesideCaptures = true;
  static constexpr int kThreads = 512, kSharedBytes = 4096, kGrid[] = {70000, 80, 90};
  static constexpr std::uint64_t kGridThreads = UINT64_MAX;
  static constexpr char kArrayKernel = 0, kReorgKernel = 0, kCodesKernel = 0, kKindsKernel = 0;

  static FakeCalls& calls() { return *FakeCalls::current_calls; }
  static const char* text(Status status) {
    return status == Status::OutOfMemory ? "there is no memory" : "it is broken";
  }
  static void clear_error() {}

  static Status called(const std::string& name) {
    return calls().fails == name ? Status::Failed : Status::Success;
  }
  /// Records a call that uses the current device and makes its context.
  static Status used(const std::string& name) {
    calls().contexts.insert(calls().current);
    return called(name);
  }
  /// Records a call that breaks a capture unless its thread's mode keeps it apart.
  static Status unsafe(const std::string& name) {
    if (calls().captured.empty() || calls().beside_captures) return used(name);
    calls().capture_is_broken = true;
    return Status::Failed;
  }
  static Status noted(const std::string& name, const std::string& what) {
    calls().made.push_back(name + what + " on " + std::to_string(calls().current));
    return used(name);
  }
  template <class T>
  static Status make(const std::string& name, T** made) {
    const Status status = unsafe(name);
    if (status == Status::Success) {
      *made = new T();
      ++calls().alive;
    }
    return status;
  }
  template <class T>
  static Status destroy(const T* made) {
    const Status status = unsafe("destroy");
    if (status != Status::Success) return status;
    delete made;
    --calls().alive;
    return status;
  }

  static Result<void> load() { return {}; }
  static Status count_devices(int* count) {
    *count = calls().devices;
    return called("count");
  }
  static Status get_device(int* device) {
    *device = calls().current;
    return Status::Success;
  }
  /// Makes a context on the device, as CUDA does, even if the thread only returns to it.
  static Status enter(int device) {
    const Status status = called("enter");
    if (status != Status::Success) return status;
    calls().current = device;
    calls().contexts.insert(device);
    return status;
  }
  static void leave(int before) { calls().current = before; }
  static Status exchange_capture_mode(CaptureMode* mode) {
    std::swap(calls().beside_captures, *mode);
    return Status::Success;
  }
  static Status attribute(int* value, int attribute, int) {
    *value = attribute;
    return called("attribute");
  }
  static Status describe(std::string* text, std::size_t* bytes, int device) {
    *text = "number " + std::to_string(device);
    *bytes = 3u << 20;
    return called("describe");
  }
  static Status driver(std::string* text) {
    *text = "1.5";
    return Status::Success;
  }
  static Status memory(std::size_t* free, std::size_t* total) {
    *free = calls().free;
    *total = 3u << 20;
    return unsafe("memory");
  }
  static Status allocate(void** memory, std::size_t bytes) {
    if (bytes > calls().free) return Status::OutOfMemory;
    const Status status = unsafe("allocate");
    if (status != Status::Success) return status;
    *memory = ::operator new(bytes);
    ++calls().alive;
    return status;
  }
  static Status release(void* memory) {
    const Status status = unsafe("release");
    if (status != Status::Success) return status;
    ::operator delete(memory);
    --calls().alive;
    return status;
  }
  static Status allocate_pinned(void** memory, std::size_t bytes) { return allocate(memory, bytes); }
  static Status release_pinned(void* memory) { return release(memory); }
  static Status create_stream(Stream* stream) { return make("stream", stream); }
  static Status destroy_stream(Stream stream) { return destroy(stream); }
  static Status stream_id(std::uint64_t* id, const int* stream) {
    // CUDA refuses to number a stream that is captured.
    if (calls().captured.contains(stream)) return Status::Failed;
    *id = reinterpret_cast<std::uintptr_t>(stream) + calls().made_again[stream];
    return unsafe("stream id");
  }
  static Status create_event(Event* event) { return make("event", event); }
  static Status destroy_event(Event event) { return destroy(event); }
  static Status record(Event event, const int* stream) {
    *event = {stream, calls().replays};
    return noted("record", "");
  }
  static Status wait(Event event) {
    calls().waited[event->stream] = std::max(calls().waited[event->stream], event->replays);
    calls().made.push_back("wait on " + std::to_string(calls().current));
    return unsafe("wait");
  }
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
    return unsafe("limits");
  }
  static Status allow_shared_bytes(const void*, int bytes) { return noted("allow ", std::to_string(bytes)); }

  static std::string launch_text(const void* kernel, const std::uint32_t* extent, const Launch& launch,
                                 std::size_t shared_bytes) {
    const char* const name = kernel == &kArrayKernel   ? " array"
                             : kernel == &kReorgKernel ? " reorg"
                                                       : " codes";
    return std::string(name) + " of " + std::to_string(extent[0]) + " x " + std::to_string(extent[3]) + ", " +
           std::to_string(shared_bytes) + " bytes, " + std::to_string(launch.pass.row_count) + " rows";
  }
  static void run(const std::uint32_t* extent, const Launch& launch, std::size_t shared_bytes);
  static Status launch(const void* kernel, const std::uint32_t* extent, void** arguments,
                       std::size_t shared_bytes, const int* stream) {
    const Launch& launch = *static_cast<const Launch*>(arguments[0]);
    if (!calls().captured.contains(stream)) run(extent, launch, shared_bytes);
    return noted("launch", launch_text(kernel, extent, launch, shared_bytes));
  }

  static Status is_capturing(bool* capturing, const int* stream) {
    *capturing = calls().captured.contains(stream);
    return used("is capturing");
  }
  static Status create_graph(Graph* graph) { return make("create graph", graph); }
  static Status destroy_graph(Graph graph) { return destroy(graph); }
  static Status add(Node* node, Graph graph, std::span<const Node> before, const FakeNode& added) {
    EXPECT_EQ(before.size(), graph->nodes.empty() ? 0u : 1u);
    if (!before.empty()) {
      EXPECT_EQ(before[0], graph->nodes.back().get());
    }
    graph->nodes.push_back(std::make_unique<FakeNode>(added));
    *node = graph->nodes.back().get();
    return Status::Success;
  }
  static Status add_upload(Node* node, Graph graph, std::span<const Node> before, void* to, const void* from,
                           std::size_t bytes) {
    if (called("add upload") != Status::Success) return Status::Failed;
    return add(node, graph, before, {FakeNode::Kind::Upload, to, from, bytes});
  }
  static Status add_download(Node* node, Graph graph, std::span<const Node> before, void* to,
                             const void* from, std::size_t bytes) {
    if (called("add download") != Status::Success) return Status::Failed;
    return add(node, graph, before, {FakeNode::Kind::Download, to, from, bytes});
  }
  static Status add_launch(Node* node, Graph graph, std::span<const Node> before, const void* kernel,
                           const std::uint32_t* extent, void** arguments, std::uint32_t shared_bytes) {
    if (called("add launch") != Status::Success) return Status::Failed;
    FakeNode added{FakeNode::Kind::Launch};
    added.kernel = kernel;
    std::copy(extent, extent + kDimensions, added.extent.begin());
    added.argument = *static_cast<const Launch*>(arguments[0]);
    added.shared_bytes = shared_bytes;
    return add(node, graph, before, added);
  }
  static Status instantiate(InstantiatedGraph* instantiated, Graph graph) {
    const Status status = make("instantiate", instantiated);
    if (status != Status::Success) return status;
    for (const auto& node : graph->nodes) {
      (*instantiated)->originals.push_back(node.get());
      (*instantiated)->nodes.push_back(*node);
    }
    return noted("instantiate", " " + std::to_string(graph->nodes.size()));
  }
  static Status destroy_instantiated(InstantiatedGraph graph) {
    EXPECT_LE(graph->last_replay, calls().waited[graph->stream]) << "a graph ends while it is under way";
    calls().made.emplace_back("destroy graph");
    return destroy(graph);
  }
  static Status set_launch(InstantiatedGraph graph, Node node, const void* kernel,
                           const std::uint32_t* extent, void** arguments, std::uint32_t shared_bytes) {
    const auto found = std::find(graph->originals.begin(), graph->originals.end(), node);
    EXPECT_NE(found, graph->originals.end());
    FakeNode& changed = graph->nodes[static_cast<std::size_t>(found - graph->originals.begin())];
    if (calls().launches_until_exception != 0 && --calls().launches_until_exception == 0)
      throw std::bad_alloc();
    EXPECT_EQ(changed.kernel, kernel);
    EXPECT_TRUE(std::equal(extent, extent + kDimensions, changed.extent.begin()));
    EXPECT_EQ(changed.shared_bytes, shared_bytes);
    changed.argument = *static_cast<const Launch*>(arguments[0]);
    return noted("set launch", "");
  }
  static Status replay(InstantiatedGraph graph, const int* stream) {
    EXPECT_FALSE(calls().captured.contains(stream));
    for (const FakeNode& node : graph->nodes)
      if (node.kind == FakeNode::Kind::Launch)
        run(node.extent.data(), node.argument, node.shared_bytes);
      else
        std::memcpy(node.to, node.from, node.bytes);
    graph->stream = stream;
    graph->last_replay = ++calls().replays;
    return noted("replay", " " + std::to_string(graph->nodes.size()));
  }
};

using Gpu = GpuRuntime<FakeApi>;

}  // namespace forestvm::kernels
