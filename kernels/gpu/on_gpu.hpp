// Guards around calls of a vendor's runtime. They choose the device that calls go to, keep calls from breaking stream
// captures, and turn the runtime's errors into forestvm's.
#pragma once

#include <string>

#include <forestvm/result.hpp>

namespace forestvm::kernels {

/// Returns the error of a call of the vendor's runtime, if it failed. `doing` says what the call was to do, such as
/// "creating a graph".
template <class Api>
Result<void> gpu_result(typename Api::Status status, const std::string& doing) {
  if (status == Api::kSuccess) return {};
  Api::clear_error();
  return fail(ErrorCode::Environment, std::string(Api::kName) + ": " + doing + ": " + Api::text(status));
}

/// Sends the calling thread's calls of the vendor's runtime to a device while this object lives. Its destructor
/// returns the thread to the device from before, without using that device. It serves calls that give work to a
/// stream or query one; BesideCaptures serves all others.
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

  /// Fails if calls would go to another device.
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

/// Does what OnGpu does, for calls that allocate or wait. Such a call breaks a stream capture that any thread has
/// under way, unless the calling thread is in a mode that keeps its calls apart from captures: this object sets the
/// mode while it lives.
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
  class Mode {
   public:
    Mode() { static_cast<void>(Api::exchange_capture_mode(&other_)); }
    ~Mode() { static_cast<void>(Api::exchange_capture_mode(&other_)); }
    Mode(const Mode&) = delete;
    Mode& operator=(const Mode&) = delete;

   private:
    /// The mode that the next exchange gives the thread.
    typename Api::CaptureMode other_ = Api::kBesideCaptures;
  };

  Mode mode_;  ///< Comes before gpu_, because entering the device may allocate.
  OnGpu<Api> gpu_;
};

}  // namespace forestvm::kernels
