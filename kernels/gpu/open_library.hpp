// Libraries of which there may be one of several versions, opened when the program runs.
#pragma once

#include <dlfcn.h>

#include <span>
#include <string>

#include <forestvm/result.hpp>

namespace forestvm::kernels {

/// The first of these libraries that the process has loaded already, else the first that the loader finds:
/// two versions side by side would not know each other's memory. It stays loaded. Error: what the loader says
/// of each.
inline Result<void*> open_library(std::span<const char* const> names) {
  for (const char* const name : names)
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  std::string errors;
  for (const char* const name : names) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
    errors += (errors.empty() ? "" : "; ") + std::string(dlerror());
  }
  return Error{ErrorCode::Environment, "", errors};
}

}  // namespace forestvm::kernels
