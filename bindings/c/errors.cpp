// The error messages of the C ABI, one for each thread.
#include <pthread.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "bindings/c/handles.hpp"

namespace forestvm::c_api {
namespace {

char out_of_memory[] = "out of memory";

/// The pthread key for the calling thread's last error: a text from malloc, or out_of_memory. A thread_local
/// variable would not do: where there is no memory for one, the C library ends the process.
struct LastError {
  LastError() : failed(::pthread_key_create(&key, forget)) {}

  static void forget(void* text) {
    if (text != out_of_memory) std::free(text);
  }

  ::pthread_key_t key{};
  int failed;
};
const LastError last_error;

void set_last_error(const char* function, const char* text) {
  if (last_error.failed != 0) return;
  const std::size_t size = std::strlen(function) + std::strlen(": ") + std::strlen(text) + 1;
  auto* message = static_cast<char*>(std::malloc(size));
  if (message != nullptr)
    std::snprintf(message, size, "%s: %s", function, text);
  else
    message = out_of_memory;
  void* const before = ::pthread_getspecific(last_error.key);
  LastError::forget(::pthread_setspecific(last_error.key, message) == 0 ? before : message);
}

}  // namespace

fvm_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::Refused:
      return FVM_REFUSED;
    case ErrorCode::Usage:
      return FVM_USAGE;
    case ErrorCode::Environment:
      return FVM_ENVIRONMENT;
    case ErrorCode::Internal:
      break;
  }
  return FVM_INTERNAL;
}

fvm_status failed(fvm_status status, const char* function, const char* text) {
  set_last_error(function, text);
  return status;
}

fvm_status run_guarded(const char* function, Result<void> (*work)(const void* state),
                       const void* state) noexcept {
  try {
    const Result<void> done = work(state);
    if (done) return FVM_OK;
    return failed(status_of(done.error().code), function, done.error().text().c_str());
  } catch (const std::bad_alloc&) {
    return failed(FVM_ENVIRONMENT, function, "out of memory");
  } catch (const std::system_error& error) {  // a thread cannot be started
    return failed(FVM_ENVIRONMENT, function, error.what());
  } catch (const std::exception& bug) {
    return failed(FVM_INTERNAL, function, bug.what());
  } catch (...) {
    return failed(FVM_INTERNAL, function, "an exception of unknown type");
  }
}

}  // namespace forestvm::c_api

const char* fvm_last_error(void) {
  using forestvm::c_api::last_error;
  if (last_error.failed != 0) return "no messages: the process has no pthread_key_t left for them";
  const void* const text = ::pthread_getspecific(last_error.key);
  return text == nullptr ? "" : static_cast<const char*>(text);
}
