// Rows as C callers give them -> rows as backends take them.
#pragma once

#include <cstddef>

#include <forestvm/forestvm.h>
#include <forestvm/backend.hpp>
#include <forestvm/result.hpp>

namespace forestvm::c_api {

/// Returns Usage if `type` is no fvm_type; messages call it `name`.
Result<void> check_type(const char* name, fvm_type type);

/// Returns the rows with their defaults filled in, for a program of `num_features` features. Returns
/// fvm_predict's errors for fields that make no sense.
Result<AnyRows> known_rows(const fvm_rows* given, std::size_t num_features);

}  // namespace forestvm::c_api
