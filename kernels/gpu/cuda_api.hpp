// CUDA's runtime, as gpu/runtime.hpp calls it. hip_api.hpp is its counterpart. The two stay apart although they look
// alike: most members are one line whose names, types and arguments differ between the vendors, so a common file would
// be a list of macros.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <forestvm/result.hpp>

#include "kernels/gpu/cuda_driver.hpp"

namespace forestvm::kernels {

struct CudaApi {
  using Status = cudaError_t;
  using Stream = cudaStream_t;
  using Event = cudaEvent_t;
  using Graph = cudaGraph_t;
  using Node = cudaGraphNode_t;
  using InstantiatedGraph = cudaGraphExec_t;
  using CaptureMode = CUstreamCaptureMode;

  static constexpr const char* kName = "CUDA";
  static constexpr Status kSuccess = cudaSuccess;
  static constexpr Status kOutOfMemory = cudaErrorMemoryAllocation;
  /// The mode in which a thread's calls do not break stream captures that are under way: see BesideCaptures.
  static constexpr CaptureMode kBesideCaptures = CU_STREAM_CAPTURE_MODE_RELAXED;
  static constexpr auto kThreads = cudaDevAttrMaxThreadsPerBlock;
  static constexpr auto kSharedBytes = cudaDevAttrMaxSharedMemoryPerBlockOptin;
  static constexpr cudaDeviceAttr kGrid[] = {cudaDevAttrMaxGridDimX, cudaDevAttrMaxGridDimY,
                                             cudaDevAttrMaxGridDimZ};
  /// The most threads of all blocks in a dimension of a grid together. CUDA has no such limit.
  static constexpr std::uint64_t kGridThreads = UINT64_MAX;

  static const char* text(Status status) { return cudaGetErrorString(status); }
  /// Forgets the calling thread's error, which a later call would report as its own.
  static void clear_error() { static_cast<void>(cudaGetLastError()); }

  /// Does nothing: the runtime is linked statically and finds the driver itself.
  static Result<void> load() { return {}; }
  static Status count_devices(int* count) { return cudaGetDeviceCount(count); }
  static Status get_device(int* device) { return cudaGetDevice(device); }
  static Status enter(int device) { return CudaDriver::enter(device); }
  static void leave(int) { CudaDriver::leave(); }
  static Status exchange_capture_mode(CaptureMode* mode) { return CudaDriver::exchange_capture_mode(mode); }
  static Status attribute(int* value, cudaDeviceAttr attribute, int device) {
    return cudaDeviceGetAttribute(value, attribute, device);
  }
  /// Writes a text such as "NVIDIA H100, compute capability 9.0" and the bytes of the device's memory.
  static Status describe(std::string* text, std::size_t* bytes, int device) {
    cudaDeviceProp properties{};
    const Status status = cudaGetDeviceProperties(&properties, device);
    if (status != kSuccess) return status;
    *text = std::string(properties.name) + ", compute capability " + std::to_string(properties.major) + "." +
            std::to_string(properties.minor);
    *bytes = properties.totalGlobalMem;
    return status;
  }
  /// Writes the version of CUDA that the driver supports, such as "12.4".
  static Status driver(std::string* text) {
    int version = 0;
    const Status status = cudaDriverGetVersion(&version);
    *text = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    return status;
  }
  static Status memory(std::size_t* free, std::size_t* total) { return cudaMemGetInfo(free, total); }

  static Status allocate(void** memory, std::size_t bytes) { return cudaMalloc(memory, bytes); }
  static Status release(void* memory) { return cudaFree(memory); }
  static Status allocate_pinned(void** memory, std::size_t bytes) { return cudaMallocHost(memory, bytes); }
  static Status release_pinned(void* memory) { return cudaFreeHost(memory); }

  static Status create_stream(Stream* stream) {
    return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
  }
  static Status destroy_stream(Stream stream) { return cudaStreamDestroy(stream); }
  static Status stream_id(std::uint64_t* id, Stream stream) {
    unsigned long long of_process = 0;
    const Status status = cudaStreamGetId(stream, &of_process);
    *id = of_process;
    return status;
  }
  static Status create_event(Event* event) { return cudaEventCreateWithFlags(event, cudaEventDisableTiming); }
  static Status destroy_event(Event event) { return cudaEventDestroy(event); }
  static Status record(Event event, Stream stream) { return cudaEventRecord(event, stream); }
  static Status wait(Event event) { return cudaEventSynchronize(event); }

  static Status upload(void* to, const void* from, std::size_t bytes, Stream stream) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream);
  }
  static Status download(void* to, const void* from, std::size_t bytes, Stream stream) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);
  }

  /// Writes the most threads that a block of the kernel may have, and the bytes of shared memory that the kernel
  /// takes besides the memory that a launch asks for.
  static Status kernel_limits(std::uint32_t* threads, std::uint32_t* shared_bytes, const void* kernel) {
    cudaFuncAttributes attributes{};
    const Status status = cudaFuncGetAttributes(&attributes, kernel);
    *threads = static_cast<std::uint32_t>(attributes.maxThreadsPerBlock);
    *shared_bytes = static_cast<std::uint32_t>(attributes.sharedSizeBytes);
    return status;
  }
  static Status allow_shared_bytes(const void* kernel, int bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  }
  static Status launch(const void* kernel, const std::uint32_t* extent, void** arguments,
                       std::size_t shared_bytes, Stream stream) {
    return cudaLaunchKernel(kernel, {extent[0], extent[1], extent[2]}, {extent[3], extent[4], extent[5]},
                            arguments, shared_bytes, stream);
  }

  static Status is_capturing(bool* capturing, Stream stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const Status result = cudaStreamIsCapturing(stream, &status);
    *capturing = status != cudaStreamCaptureStatusNone;
    return result;
  }
  static Status create_graph(Graph* graph) { return cudaGraphCreate(graph, 0); }
  static Status destroy_graph(Graph graph) { return cudaGraphDestroy(graph); }
  /// Adds a node that runs after the one in `before`, or as the graph's first if `before` is empty.
  static Status add_upload(Node* node, Graph graph, std::span<const Node> before, void* to, const void* from,
                           std::size_t bytes) {
    return cudaGraphAddMemcpyNode1D(node, graph, before.data(), before.size(), to, from, bytes,
                                    cudaMemcpyHostToDevice);
  }
  static Status add_download(Node* node, Graph graph, std::span<const Node> before, void* to,
                             const void* from, std::size_t bytes) {
    return cudaGraphAddMemcpyNode1D(node, graph, before.data(), before.size(), to, from, bytes,
                                    cudaMemcpyDeviceToHost);
  }
  static Status add_launch(Node* node, Graph graph, std::span<const Node> before, const void* kernel,
                           const std::uint32_t* extent, void** arguments, std::uint32_t shared_bytes) {
    const cudaKernelNodeParams launch = launch_of(kernel, extent, arguments, shared_bytes);
    return cudaGraphAddKernelNode(node, graph, before.data(), before.size(), &launch);
  }
  static Status instantiate(InstantiatedGraph* instantiated, Graph graph) {
    return cudaGraphInstantiateWithFlags(instantiated, graph, 0);
  }
  static Status destroy_instantiated(InstantiatedGraph graph) { return cudaGraphExecDestroy(graph); }
  static Status set_launch(InstantiatedGraph graph, Node node, const void* kernel,
                           const std::uint32_t* extent, void** arguments, std::uint32_t shared_bytes) {
    const cudaKernelNodeParams launch = launch_of(kernel, extent, arguments, shared_bytes);
    return cudaGraphExecKernelNodeSetParams(graph, node, &launch);
  }
  static Status replay(InstantiatedGraph graph, Stream stream) { return cudaGraphLaunch(graph, stream); }

 private:
  static cudaKernelNodeParams launch_of(const void* kernel, const std::uint32_t* extent, void** arguments,
                                        std::uint32_t shared_bytes) {
    cudaKernelNodeParams launch{};
    launch.func = const_cast<void*>(kernel);
    launch.gridDim = {extent[0], extent[1], extent[2]};
    launch.blockDim = {extent[3], extent[4], extent[5]};
    launch.sharedMemBytes = shared_bytes;
    launch.kernelParams = arguments;
    return launch;
  }
};

}  // namespace forestvm::kernels
