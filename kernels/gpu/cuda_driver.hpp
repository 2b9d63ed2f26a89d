// What CUDA's runtime has no call for, by its driver: a thread that uses a device and goes back to its own.
// cudaSetDevice would make a context on the device that it goes back to, hundreds of MB of that device's
// memory, also where the thread has never used it. Contexts that the driver is told to push and pop are the
// runtime's own, the primary ones.
#pragma once

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

namespace forestvm::kernels {

class CudaDriver {
 public:
  /// Error: the driver lacks what is needed.
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

  /// As cudaThreadExchangeStreamCaptureMode, of which nobody says that it makes no context.
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

  /// It stays, as the runtime keeps those that it makes, until the process ends.
  CUresult primary_context(CUcontext* context, int device) const {
    static std::mutex mutex;
    static std::map<int, CUcontext> kept;
    const std::lock_guard lock(mutex);
    CUcontext& of_device = kept[device];
    const CUresult result = of_device == nullptr ? retain_(&of_device, device) : CUDA_SUCCESS;
    *context = of_device;
    return result;
  }

  /// Both count errors alike.
  static cudaError_t error_of(CUresult result) { return static_cast<cudaError_t>(result); }

  cudaError_t status_ = cudaSuccess;
  PFN_cuDevicePrimaryCtxRetain_v7000 retain_ = nullptr;
  PFN_cuCtxPushCurrent_v4000 push_ = nullptr;
  PFN_cuCtxPopCurrent_v4000 pop_ = nullptr;
  PFN_cuThreadExchangeStreamCaptureMode_v10010 exchange_capture_mode_ = nullptr;
};

}  // namespace forestvm::kernels
