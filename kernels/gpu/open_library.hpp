// Opens a library that may be installed in one of several versions.
#pragma once

#include <dlfcn.h>

#include <span>
#include <string>

#include <forestvm/result.hpp>

namespace forestvm::kernels {

/// Returns the first of these libraries that the process has already loaded, or else the first that the
/// loader finds. A loaded one comes first because two versions in a process would not know each other's
/// memory. The library stays loaded. The error holds the loader's message for each name.
inline Result<void*> open_library(std::span<const char* const> names) {
  for (const char* const name : names)
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  std::string errors;
  for (const char* const name : names) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
    errors += (errors.empty() ? "" : "; ") + std::string(dlerror());
  }
  return fail(ErrorCode::Environment, errors);
}

}  // namespace forestvm::kernels
