// Structs of forestvm.h as callers of any version give them: the size comes first.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include <forestvm/result.hpp>

namespace forestvm::c_api {

inline Error usage(std::string message) { return {ErrorCode::Usage, "", std::move(message)}; }

/// A size that no version's structs will exceed: a caller who gives a larger one has not set it.
inline constexpr std::size_t kMaxStructSize = 4096;

/// Checks that a caller of this or a later version set a struct's size. Messages call the struct `name`, its
/// type `type` and its initial value `defaults`.
template <class Struct>
Result<void> check_size(const Struct* given, const char* name, const char* type, const char* defaults) {
  if (given->size >= sizeof(Struct) && given->size <= kMaxStructSize) return {};
  return usage(std::string(name) + ".size is " + std::to_string(given->size) + ", not sizeof(" + type +
               "): begin with " + defaults);
}

/// Returns the fields of a struct that such a caller gave. Fields that a later version added must be zero.
template <class Struct>
Result<Struct> known_fields(const Struct* given, const char* name, const char* type, const char* defaults) {
  FVM_TRY(check_size(given, name, type, defaults));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Struct); i < given->size; ++i)
    if (bytes[i] != 0)
      return usage(std::string("the ") + name +
                   " set a field that this version of the library does not have");
  Struct known;
  std::memcpy(&known, given, sizeof known);
  return known;
}

}  // namespace forestvm::c_api
