// Structs of forestvm.h as callers of any version give them: the size comes first.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include <forestvm/result.hpp>

namespace forestvm::c_api {

inline Error usage(std::string message) { return {ErrorCode::Usage, "", std::move(message)}; }

/// Larger than any version's structs will be: a size beyond it was never set.
inline constexpr std::size_t kMaxStructSize = 4096;

/// Whether a caller of this or a later version set a struct's size. `name`, `type` and `defaults` are what
/// messages call it, its type and the macro to begin with.
template <class Struct>
Result<void> check_size(const Struct* given, const char* name, const char* type, const char* defaults) {
  if (given->size >= sizeof(Struct) && given->size <= kMaxStructSize) return {};
  return usage(std::string(name) + ".size is " + std::to_string(given->size) + ", not sizeof(" + type +
               "): begin with " + defaults);
}

/// The fields of a struct that such a caller gave. What a later version added must be zero.
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
