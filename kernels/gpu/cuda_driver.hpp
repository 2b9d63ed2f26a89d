// Calls of CUDA's driver, for what its runtime cannot do: let a thread use a device and return to the device
// that it used before. Returning by cudaSetDevice would make a context on that device even if the thread has
// never used it, which takes hundreds of MB of the device's memory. The driver pushes and pops contexts
// instead; they are the primary ones, which the runtime uses too.
#pragma once

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

namespace forestvm::kernels {

class CudaDriver {
 public:
  /// Makes the device current until leave(). Fails if the driver lacks a function that this needs.
  static cudaError_t enter(int device) {
    const CudaDriver& driver = loaded();
    if (driver.status_ != cudaSuccess) return driver.status_;
    CUcontext context = nullptr;
    const CUresult found = driver.primary_context(&context, device);
    return error_of(found == CUDA_SUCCESS ? driver.push_(context) : found);
  }

  static void leave() {
    CUcontext left = nullptr;
    static_cast<void>(loaded().pop_(&left));
  }

  /// Replaces cudaThreadExchangeStreamCaptureMode, which is not documented to make no context.
  static cudaError_t exchange_capture_mode(CUstreamCaptureMode* mode) {
    const CudaDriver& driver = loaded();
    return driver.status_ != cudaSuccess ? driver.status_ : error_of(driver.exchange_capture_mode_(mode));
  }

 private:
  CudaDriver() {
    find("cuDevicePrimaryCtxRetain", 7000, retain_);
    find("cuCtxPushCurrent", 4000, push_);
    find("cuCtxPopCurrent", 4000, pop_);
    find("cuThreadExchangeStreamCaptureMode", 10010, exchange_capture_mode_);
  }

  static const CudaDriver& loaded() {
    static const CudaDriver driver;
    return driver;
  }

  template <class Function>
  void find(const char* name, unsigned version, Function& function) {
    if (status_ != cudaSuccess) return;
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    status_ = cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
    if (status_ == cudaSuccess && found == nullptr) status_ = cudaErrorNotSupported;
    function = reinterpret_cast<Function>(found);
  }

  /// Retains the context until the process ends, as the runtime does with contexts that it makes.
  CUresult primary_context(CUcontext* context, int device) const {
    static std::mutex mutex;
    static std::map<int, CUcontext> kept;
    const std::lock_guard lock(mutex);
    CUcontext& of_device = kept[device];
    const CUresult result = of_device == nullptr ? retain_(&of_device, device) : CUDA_SUCCESS;
    *context = of_device;
    return result;
  }

  /// Converts an error: the driver and the runtime number them alike.
  static cudaError_t error_of(CUresult result) { return static_cast<cudaError_t>(result); }

  cudaError_t status_ = cudaSuccess;
  PFN_cuDevicePrimaryCtxRetain_v7000 retain_ = nullptr;
  PFN_cuCtxPushCurrent_v4000 push_ = nullptr;
  PFN_cuCtxPopCurrent_v4000 pop_ = nullptr;
  PFN_cuThreadExchangeStreamCaptureMode_v10010 exchange_capture_mode_ = nullptr;
};

}  // namespace forestvm::kernels
