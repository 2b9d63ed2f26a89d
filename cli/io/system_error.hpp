// Errors of system calls.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include <forestvm/result.hpp>

namespace forestvm::cli {

/// Returns the error that errno names. `what` says what failed, such as "cannot read".
inline Error system_error(const char* what) {
  return fail(ErrorCode::Environment, std::string(what) + ": " + std::strerror(errno));
}

/// Returns the error of a temporary file that cannot be written, as errno names it.
inline Error temporary_file_error() {
  return fail(ErrorCode::Environment, "temporary file", std::string("cannot write: ") + std::strerror(errno));
}

}  // namespace forestvm::cli
