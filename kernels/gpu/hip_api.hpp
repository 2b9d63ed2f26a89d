// HIP's runtime, as gpu/runtime.hpp calls it.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace forestvm::kernels {

struct HipApi {
  using Status = hipError_t;
  using Stream = hipStream_t;
  using Event = hipEvent_t;
  using Graph = hipGraph_t;
  using Node = hipGraphNode_t;
  using InstantiatedGraph = hipGraphExec_t;

  static constexpr const char* kName = "HIP";
  static constexpr Status kSuccess = hipSuccess;
  static constexpr Status kOutOfMemory = hipErrorOutOfMemory;
  static constexpr auto kThreads = hipDeviceAttributeMaxThreadsPerBlock;
  static constexpr auto kSharedBytes = hipDeviceAttributeMaxSharedMemoryPerBlock;
  static constexpr hipDeviceAttribute_t kGrid[] = {
      hipDeviceAttributeMaxGridDimX, hipDeviceAttributeMaxGridDimY, hipDeviceAttributeMaxGridDimZ};

  static const char* text(Status status) { return hipGetErrorString(status); }
  /// The calling thread's error, which a later call would report as its own, is forgotten.
  static void clear_error() { static_cast<void>(hipGetLastError()); }

  static Status count_devices(int* count) { return hipGetDeviceCount(count); }
  static Status get_device(int* device) { return hipGetDevice(device); }
  static Status set_device(int device) { return hipSetDevice(device); }
  static Status attribute(int* value, hipDeviceAttribute_t attribute, int device) {
    return hipDeviceGetAttribute(value, attribute, device);
  }
  /// "AMD Instinct MI210, gfx90a"
  static Status describe(std::string* text, int device) {
    hipDeviceProp_t properties{};
    const Status status = hipGetDeviceProperties(&properties, device);
    if (status == kSuccess) *text = std::string(properties.name) + ", " + properties.gcnArchName;
    return status;
  }
  static Status driver(std::string* text) {
    int version = 0;
    const Status status = hipDriverGetVersion(&version);
    *text = std::to_string(version);
    return status;
  }
  static Status memory(std::size_t* free, std::size_t* total) { return hipMemGetInfo(free, total); }

  static Status allocate(void** memory, std::size_t bytes) { return hipMalloc(memory, bytes); }
  static Status release(void* memory) { return hipFree(memory); }
  static Status allocate_pinned(void** memory, std::size_t bytes) {
    return hipHostMalloc(memory, bytes, hipHostMallocDefault);
  }
  static Status release_pinned(void* memory) { return hipHostFree(memory); }

  static Status create_stream(Stream* stream) {
    return hipStreamCreateWithFlags(stream, hipStreamNonBlocking);
  }
  static Status destroy_stream(Stream stream) { return hipStreamDestroy(stream); }
  static Status create_event(Event* event) { return hipEventCreateWithFlags(event, hipEventDisableTiming); }
  static Status destroy_event(Event event) { return hipEventDestroy(event); }
  static Status record(Event event, Stream stream) { return hipEventRecord(event, stream); }
  static Status wait(Event event) { return hipEventSynchronize(event); }

  static Status upload(void* to, const void* from, std::size_t bytes, Stream stream) {
    return hipMemcpyAsync(to, from, bytes, hipMemcpyHostToDevice, stream);
  }
  static Status download(void* to, const void* from, std::size_t bytes, Stream stream) {
    return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToHost, stream);
  }

  /// Threads of a block of the kernel, at most, and the shared memory that it has besides a launch's.
  static Status kernel_limits(std::uint32_t* threads, std::uint32_t* shared_bytes, const void* kernel) {
    hipFuncAttributes attributes{};
    const Status status = hipFuncGetAttributes(&attributes, kernel);
    *threads = static_cast<std::uint32_t>(attributes.maxThreadsPerBlock);
    *shared_bytes = static_cast<std::uint32_t>(attributes.sharedSizeBytes);
    return status;
  }
  static Status allow_shared_bytes(const void* kernel, int bytes) {
    return hipFuncSetAttribute(kernel, hipFuncAttributeMaxDynamicSharedMemorySize, bytes);
  }
  static Status launch(const void* kernel, const std::uint32_t* extent, void** arguments,
                       std::size_t shared_bytes, Stream stream) {
    return hipLaunchKernel(kernel, {extent[0], extent[1], extent[2]}, {extent[3], extent[4], extent[5]},
                           arguments, shared_bytes, stream);
  }

  static Status is_capturing(bool* capturing, Stream stream) {
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    const Status result = hipStreamIsCapturing(stream, &status);
    *capturing = status != hipStreamCaptureStatusNone;
    return result;
  }
  static Status create_graph(Graph* graph) { return hipGraphCreate(graph, 0); }
  static Status destroy_graph(Graph graph) { return hipGraphDestroy(graph); }
  /// A node behind `before`, the number of whose nodes is 0 or 1.
  static Status add_upload(Node* node, Graph graph, std::span<const Node> before, void* to, const void* from,
                           std::size_t bytes) {
    return hipGraphAddMemcpyNode1D(node, graph, before.data(), before.size(), to, from, bytes,
                                   hipMemcpyHostToDevice);
  }
  static Status add_download(Node* node, Graph graph, std::span<const Node> before, void* to,
                             const void* from, std::size_t bytes) {
    return hipGraphAddMemcpyNode1D(node, graph, before.data(), before.size(), to, from, bytes,
                                   hipMemcpyDeviceToHost);
  }
  static Status add_launch(Node* node, Graph graph, std::span<const Node> before, const void* kernel,
                           const std::uint32_t* extent, void** arguments, std::uint32_t shared_bytes) {
    const hipKernelNodeParams launch = launch_of(kernel, extent, arguments, shared_bytes);
    return hipGraphAddKernelNode(node, graph, before.data(), before.size(), &launch);
  }
  static Status instantiate(InstantiatedGraph* instantiated, Graph graph) {
    return hipGraphInstantiateWithFlags(instantiated, graph, 0);
  }
  static Status destroy_instantiated(InstantiatedGraph graph) { return hipGraphExecDestroy(graph); }
  static Status set_launch(InstantiatedGraph graph, Node node, const void* kernel,
                           const std::uint32_t* extent, void** arguments, std::uint32_t shared_bytes) {
    const hipKernelNodeParams launch = launch_of(kernel, extent, arguments, shared_bytes);
    return hipGraphExecKernelNodeSetParams(graph, node, &launch);
  }
  static Status replay(InstantiatedGraph graph, Stream stream) { return hipGraphLaunch(graph, stream); }

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
