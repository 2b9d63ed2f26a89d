// Calls of a vendor's runtime: to which device they go, what they do to captures of streams, and what becomes
// of their errors.
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

/// Calls of the vendor's runtime go to this device, while it lives; to the calling thread's own afterwards,
/// which is not used for that. For calls that give work to a stream or ask it something.
template <class Api>
class OnGpu {
 public:
  explicit OnGpu(int device) {
    static_cast<void>(Api::get_device(&before_));
    if (before_ == device) return;
    status_ = Api::enter(device);
    entered_ = status_ == Api::kSuccess;
  }
  ~OnGpu() {
    if (entered_) Api::leave(before_);
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
  bool entered_ = false;
  typename Api::Status status_ = Api::kSuccess;
};

/// The same for all other calls. Those that allocate or wait break a capture that any thread has under way,
/// unless the calling thread says that they are no part of it, which is said here.
template <class Api>
class BesideCaptures {
 public:
  explicit BesideCaptures(int device) : gpu_(device) {}

  Result<void> is_chosen() const { return gpu_.is_chosen(); }

  template <class Call>
  Result<void> call(Call call, const std::string& doing) const {
    return gpu_.call(call, doing);
  }

 private:
  class Said {
   public:
    Said() { static_cast<void>(Api::exchange_capture_mode(&other_)); }
    ~Said() { static_cast<void>(Api::exchange_capture_mode(&other_)); }
    Said(const Said&) = delete;
    Said& operator=(const Said&) = delete;

   private:
    typename Api::CaptureMode other_ = Api::kBesideCaptures;  ///< than the thread has
  };

  Said said_;  ///< before the device is entered, which may allocate
  OnGpu<Api> gpu_;
};

}  // namespace forestvm::kernels
