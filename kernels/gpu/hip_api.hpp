// HIP's runtime, as gpu/runtime.hpp calls it: the counterpart of cuda_api.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <forestvm/result.hpp>

#include "kernels/gpu/hip_library.hpp"

namespace forestvm::kernels {

struct HipApi {
  using Status = hipError_t;
  using Stream = hipStream_t;
  using Event = hipEvent_t;
  using Graph = hipGraph_t;
  using Node = hipGraphNode_t;
  using InstantiatedGraph = hipGraphExec_t;
  using CaptureMode = hipStreamCaptureMode;

  static constexpr const char* kName = "HIP";
  static constexpr Status kSuccess = hipSuccess;
  static constexpr Status kOutOfMemory = hipErrorOutOfMemory;
  static constexpr CaptureMode kBesideCaptures = hipStreamCaptureModeRelaxed;
  static constexpr auto kThreads = hipDeviceAttributeMaxThreadsPerBlock;
  static constexpr auto kSharedBytes = hipDeviceAttributeMaxSharedMemoryPerBlock;
  static constexpr hipDeviceAttribute_t kGrid[] = {
      hipDeviceAttributeMaxGridDimX, hipDeviceAttributeMaxGridDimY, hipDeviceAttributeMaxGridDimZ};
  /// The most threads of all blocks in a dimension of a grid together: AMD's command queues count them in 32 bits.
  static constexpr std::uint64_t kGridThreads = UINT32_MAX;

  static const char* text(Status status) { return hip().hipGetErrorString(status); }
  /// Forgets the calling thread's error, which a later call would report as its own.
  static void clear_error() { static_cast<void>(hip().hipGetLastError()); }

  static Result<void> load() {
    const Result<HipFunctions>& loaded = load_hip();
    return loaded.ok() ? Result<void>() : loaded.error();
  }
  static Status count_devices(int* count) { return hip().hipGetDeviceCount(count); }
  static Status get_device(int* device) { return hip().hipGetDevice(device); }
  /// Makes the device current until leave(). HIP takes none of a device's memory when it is chosen, so leave() may
  /// simply choose the previous one.
  static Status enter(int device) { return hip().hipSetDevice(device); }
  static void leave(int before) { static_cast<void>(hip().hipSetDevice(before)); }
  static Status exchange_capture_mode(CaptureMode* mode) {
    return hip().hipThreadExchangeStreamCaptureMode(mode);
  }
  static Status attribute(int* value, hipDeviceAttribute_t attribute, int device) {
    return hip().hipDeviceGetAttribute(value, attribute, device);
  }
  /// Writes a text such as "AMD Instinct MI210" and the bytes of the device's memory. It does without
  /// hipGetDeviceProperties, whose struct has another layout since ROCm 6.
  static Status describe(std::string* text, std::size_t* bytes, int device) {
    std::array<char, 256> name{};
    if (const Status status = hip().hipDeviceGetName(name.data(), name.size(), device); status != kSuccess)
      return status;
    *text = name.data();
    return hip().hipDeviceTotalMem(bytes, device);
  }
  /// Writes the number of the driver's version.
  static Status driver(std::string* text) {
    int version = 0;
    const Status status = hip().hipDriverGetVersion(&version);
    *text = std::to_string(version);
    return status;
  }
  static Status memory(std::size_t* free, std::size_t* total) { return hip().hipMemGetInfo(free, total); }

  static Status allocate(void** memory, std::size_t bytes) { return hip().hipMalloc(memory, bytes); }
  static Status release(void* memory) { return hip().hipFree(memory); }
  static Status allocate_pinned(void** memory, std::size_t bytes) {
    return hip().hipHostMalloc(memory, bytes, hipHostMallocDefault);
  }
  static Status release_pinned(void* memory) { return hip().hipHostFree(memory); }

  static Status create_stream(Stream* stream) {
    return hip().hipStreamCreateWithFlags(stream, hipStreamNonBlocking);
  }
  static Status destroy_stream(Stream stream) { return hip().hipStreamDestroy(stream); }
  /// Takes the stream's address where the runtime has no numbers for streams (before ROCm 7.1): there a new
  /// stream at the address of a destroyed one is taken for that one.
  static Status stream_id(std::uint64_t* id, Stream stream) {
    unsigned long long of_process = reinterpret_cast<std::uintptr_t>(stream);
    const Status status =
        hip().hipStreamGetId == nullptr ? kSuccess : hip().hipStreamGetId(stream, &of_process);
    *id = of_process;
    return status;
  }
  static Status create_event(Event* event) {
    return hip().hipEventCreateWithFlags(event, hipEventDisableTiming);
  }
  static Status destroy_event(Event event) { return hip().hipEventDestroy(event); }
  static Status record(Event event, Stream stream) { return hip().hipEventRecord(event, stream); }
  static Status wait(Event event) { return hip().hipEventSynchronize(event); }

  static Status upload(void* to, const void* from, std::size_t bytes, Stream stream) {
    return hip().hipMemcpyAsync(to, from, bytes, hipMemcpyHostToDevice, stream);
  }
  static Status download(void* to, const void* from, std::size_t bytes, Stream stream) {
    return hip().hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToHost, stream);
  }

  /// Writes the most threads that a block of the kernel may have, and the bytes of shared memory that the kernel
  /// takes besides the memory that a launch asks for.
  static Status kernel_limits(std::uint32_t* threads, std::uint32_t* shared_bytes, const void* kernel) {
    hipFuncAttributes attributes{};
    const Status status = hip().hipFuncGetAttributes(&attributes, kernel);
    *threads = static_cast<std::uint32_t>(attributes.maxThreadsPerBlock);
    *shared_bytes = static_cast<std::uint32_t>(attributes.sharedSizeBytes);
    return status;
  }
  static Status allow_shared_bytes(const void* kernel, int bytes) {
    return hip().hipFuncSetAttribute(kernel, hipFuncAttributeMaxDynamicSharedMemorySize, bytes);
  }
  static Status launch(const void* kernel, const std::uint32_t* extent, void** arguments,
                       std::size_t shared_bytes, Stream stream) {
    return hip().hipLaunchKernel(kernel, {extent[0], extent[1], extent[2]}, {extent[3], extent[4], extent[5]},
                                 arguments, shared_bytes, stream);
  }

  static Status is_capturing(bool* capturing, Stream stream) {
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    const Status result = hip().hipStreamIsCapturing(stream, &status);
    *capturing = status != hipStreamCaptureStatusNone;
    return result;
  }
  static Status create_graph(Graph* graph) { return hip().hipGraphCreate(graph, 0); }
  static Status destroy_graph(Graph graph) { return hip().hipGraphDestroy(graph); }
  /// Adds a node that runs after the one in `before`, or as the graph's first if `before` is empty.
  static Status add_upload(Node* node, Graph graph, std::span<const Node> before, void* to, const void* from,
                           std::size_t bytes) {
    return hip().hipGraphAddMemcpyNode1D(node, graph, before.data(), before.size(), to, from, bytes,
                                         hipMemcpyHostToDevice);
  }
  static Status add_download(Node* node, Graph graph, std::span<const Node> before, void* to,
                             const void* from, std::size_t bytes) {
    return hip().hipGraphAddMemcpyNode1D(node, graph, before.data(), before.size(), to, from, bytes,
                                         hipMemcpyDeviceToHost);
  }
  static Status add_launch(Node* node, Graph graph, std::span<const Node> before, const void* kernel,
                           const std::uint32_t* extent, void** arguments, std::uint32_t shared_bytes) {
    const hipKernelNodeParams launch = launch_of(kernel, extent, arguments, shared_bytes);
    return hip().hipGraphAddKernelNode(node, graph, before.data(), before.size(), &launch);
  }
  static Status instantiate(InstantiatedGraph* instantiated, Graph graph) {
    return hip().hipGraphInstantiateWithFlags(instantiated, graph, 0);
  }
  static Status destroy_instantiated(InstantiatedGraph graph) { return hip().hipGraphExecDestroy(graph); }
  static Status set_launch(InstantiatedGraph graph, Node node, const void* kernel,
                           const std::uint32_t* extent, void** arguments, std::uint32_t shared_bytes) {
    const hipKernelNodeParams launch = launch_of(kernel, extent, arguments, shared_bytes);
    return hip().hipGraphExecKernelNodeSetParams(graph, node, &launch);
  }
  static Status replay(InstantiatedGraph graph, Stream stream) { return hip().hipGraphLaunch(graph, stream); }

 private:
  static hipKernelNodeParams launch_of(const void* kernel, const std::uint32_t* extent, void** arguments,
                                       std::uint32_t shared_bytes) {
    hipKernelNodeParams launch{};
    launch.func = const_cast<void*>(kernel);
    launch.gridDim = {extent[0], extent[1], extent[2]};
    launch.blockDim = {extent[3], extent[4], extent[5]};
    launch.sharedMemBytes = shared_bytes;
    launch.kernelParams = arguments;
    return launch;
  }
};

}  // namespace forestvm::kernels
