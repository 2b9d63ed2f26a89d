// Calls of a vendor's runtime: to which device they go, and what becomes of their errors.
#pragma once

#include <string>

#include <forestvm/result.hpp>

namespace forestvm::kernels {

template <class Api>
Result<void> gpu_result(typename Api::Status status, const std::string& doing) {
  if (status == Api::kSuccess) return {};
  Api::clear_error();
  return Error{ErrorCode::Environment, "", std::string(Api::kName) + ": " + doing + ": " + Api::text(status)};
}

/// Calls of the vendor's runtime go to this device, while it lives; to the calling thread's own afterwards.
template <class Api>
class OnGpu {
 public:
  explicit OnGpu(int device) {
    static_cast<void>(Api::get_device(&before_));
    changed_ = before_ != device;
    status_ = changed_ ? Api::set_device(device) : Api::kSuccess;
  }
  ~OnGpu() {
    if (changed_) static_cast<void>(Api::set_device(before_));
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  /// Error: calls would go to another device.
  Result<void> is_chosen() const { return gpu_result<Api>(status_, "choosing the device"); }

  template <class Call>
  Result<void> call(Call call, const std::string& doing) const {
    FVM_TRY(is_chosen());
    return gpu_result<Api>(call(), doing);
  }

 private:
  int before_ = 0;
  bool changed_;
  typename Api::Status status_;
};

}  // namespace forestvm::kernels
