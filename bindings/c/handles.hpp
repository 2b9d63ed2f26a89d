// The handles of forestvm.h, and guarded(), which runs the body of each C function: it turns errors and exceptions into
// a status code and the thread's last error.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include <forestvm/forestvm.h>
#include <forestvm/backend.hpp>
#include <forestvm/core/platform.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/result.hpp>

#include "bindings/c/rows.hpp"
#include "bindings/c/structs.hpp"

namespace forestvm::c_api {

/// The first word of a handle, which tells programs and contexts apart.
enum class Tag : std::uint64_t { Program = 0x6d6172676f727076, Context = 0x74786574'6e6f6376 };

}  // namespace forestvm::c_api

struct fvm_program {
  static constexpr auto kTag = forestvm::c_api::Tag::Program;
  static constexpr const char* kName = "program";

  const forestvm::c_api::Tag tag = kTag;
  std::shared_ptr<const forestvm::Predictor> predictor;
  std::shared_ptr<const forestvm::c_api::Names> names;
  std::string description;
  std::string fingerprint;
};

struct fvm_context {
  static constexpr auto kTag = forestvm::c_api::Tag::Context;
  static constexpr const char* kName = "context";

  const forestvm::c_api::Tag tag = kTag;
  std::atomic<bool> in_use = false;
  std::shared_ptr<const forestvm::Predictor> predictor;
  std::shared_ptr<const forestvm::c_api::Names> names;
  std::unique_ptr<forestvm::Context> memory;
  forestvm::c_api::ColumnMemory columns;
};

namespace forestvm::c_api {

/// Returns the status of an error.
fvm_status status_of(ErrorCode code);

/// Sets the calling thread's last error to "function: text". Returns `status`.
fvm_status failed(fvm_status status, const char* function, const char* text);

/// Calls work(state) for the C function called `function`.
fvm_status run_guarded(const char* function, Result<void> (*work)(const void* state),
                       const void* state) noexcept;

/// Runs `work`, a function that returns Result<void>, for the C function called `function`.
template <class Work>
fvm_status guarded(const char* function, const Work& work) noexcept {
  return run_guarded(
      function, [](const void* state) -> Result<void> { return (*static_cast<const Work*>(state))(); },
      &work);
}

/// Returns whether a pointer is to a handle of its type.
template <class Handle>
FVM_INLINE bool is_handle(const Handle* handle) {
  if (handle == nullptr) return false;
  Tag tag;  // read as bytes, because the pointer may be to another type
  std::memcpy(&tag, static_cast<const void*>(handle), sizeof tag);
  return tag == Handle::kTag;
}

template <class Handle>
Result<void> check_handle(const Handle* handle) {
  if (handle == nullptr) return usage("the {} is null", Handle::kName);
  if (!is_handle(handle)) return usage("the handle is not a {}", Handle::kName);
  return {};
}

}  // namespace forestvm::c_api
