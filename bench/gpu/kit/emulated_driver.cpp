// The functions of CUDA's driver that driver.py uses, for an emulated device: its memory is the host's, and its streams
// are the emulator's. With this driver and an emulated library for NVIDIA GPUs, the kit's plan runs without a GPU.
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/emulator/stream.hpp"

namespace {

using forestvm::kernels::emulator::Stream;

/// Values of CUresult.
constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kCapturing = 900, kNotCapturing = 901;

struct Graph {
  std::vector<Stream::Work> work;
};

constexpr std::string_view kName = "emulator of a GPU";

}  // namespace

#define FVM_EXPORT extern "C" __attribute__((visibility("default"))) int

FVM_EXPORT cuInit(unsigned) { return kSuccess; }

FVM_EXPORT cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}

FVM_EXPORT cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? kSuccess : kInvalidValue;
}

FVM_EXPORT cuDeviceGetName(char* name, int size, int) {
  if (static_cast<std::size_t>(size) <= kName.size()) return kInvalidValue;
  name[kName.copy(name, kName.size())] = '\0';
  return kSuccess;
}

FVM_EXPORT cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = 0;
  return kSuccess;
}

FVM_EXPORT cuDeviceGetAttribute(int* value, int, int) {
  *value = 0;
  return kSuccess;
}

FVM_EXPORT cuDevicePrimaryCtxRetain(void** context, int) {
  *context = nullptr;
  return kSuccess;
}

FVM_EXPORT cuCtxSetCurrent(void*) { return kSuccess; }

// CUdeviceptr, an integer of 64 bits, is passed in the same way as a pointer.
FVM_EXPORT cuMemAlloc_v2(void** address, std::size_t bytes) {
  *address = ::operator new (bytes, std::align_val_t{256}, std::nothrow);
  return *address == nullptr ? kOutOfMemory : kSuccess;
}

FVM_EXPORT cuMemFree_v2(void* address) {
  ::operator delete (address, std::align_val_t{256});
  return kSuccess;
}

// Copies and fills wait for no stream, as if all streams had been created not to wait for the default one.
FVM_EXPORT cuMemcpyHtoD_v2(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return kSuccess;
}

FVM_EXPORT cuMemcpyDtoH_v2(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return kSuccess;
}

FVM_EXPORT cuMemsetD8_v2(void* to, unsigned char byte, std::size_t bytes) {
  std::memset(to, byte, bytes);
  return kSuccess;
}

FVM_EXPORT cuStreamCreate(Stream** stream, unsigned) {
  *stream = std::make_unique<Stream>().release();
  return kSuccess;
}

FVM_EXPORT cuStreamSynchronize(Stream* stream) {
  if (stream == nullptr) return kSuccess;
  if (stream->is_captured()) return kCapturing;
  return stream->wait().ok() ? kSuccess : kInvalidValue;
}

FVM_EXPORT cuStreamDestroy_v2(Stream* stream) {
  const std::unique_ptr<Stream> destroyed(stream);
  return kSuccess;
}

FVM_EXPORT cuStreamBeginCapture_v2(Stream* stream, int) {
  if (stream->is_captured()) return kCapturing;
  stream->begin_capture();
  return kSuccess;
}

FVM_EXPORT cuStreamEndCapture(Stream* stream, Graph** graph) {
  if (!stream->is_captured()) return kNotCapturing;
  *graph = std::make_unique<Graph>(Graph{stream->end_capture()}).release();
  return kSuccess;
}

FVM_EXPORT cuGraphInstantiateWithFlags(Graph** ready, const Graph* graph, unsigned long long) {
  *ready = std::make_unique<Graph>(*graph).release();
  return kSuccess;
}

FVM_EXPORT cuGraphLaunch(const Graph* ready, Stream* stream) {
  for (const Stream::Work& work : ready->work) stream->add(work);
  return kSuccess;
}

FVM_EXPORT cuGraphDestroy(Graph* graph) {
  const std::unique_ptr<Graph> destroyed(graph);
  return kSuccess;
}

FVM_EXPORT cuGraphExecDestroy(Graph* ready) { return cuGraphDestroy(ready); }

FVM_EXPORT cuGetErrorString(int, const char** text) {
  *text = "an error of the emulated driver";
  return kSuccess;
}
