// Rows as C callers give them -> rows as backends take them.
#pragma once

#include <cstddef>

#include <forestvm/forestvm.h>
#include <forestvm/backend.hpp>
#include <forestvm/result.hpp>

namespace forestvm::c_api {

/// Usage if `type` is none; `name` is what the message calls it.
Result<void> check_type(const char* name, fvm_type type);

/// Returns the rows with their defaults filled in, for a program of so many features. Errors: what
/// fvm_predict says of fields that make no sense.
Result<AnyRows> known_rows(const fvm_rows* given, std::size_t num_features);

}  // namespace forestvm::c_api
