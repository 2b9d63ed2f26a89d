// Structs of forestvm.h as callers of any version give them: the size comes first.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/result.hpp>

namespace forestvm::c_api {

/// A size that no version's structs will exceed: a caller who gives a larger one has not set it.
inline constexpr std::size_t kMaxStructSize = 4096;

/// Checks the size of a struct that a caller of this or a later version set, `given`; this version knows the size
/// `known`. Messages call the struct `name`, its type `type` and its initial value `defaults`.
[[gnu::noinline]] inline Result<void> check_size(std::size_t given, std::size_t known, const char* name,
                                                 const char* type, const char* defaults) {
  if (given >= known && given <= kMaxStructSize) return {};
  return usage("{}.size is {}, not sizeof({}): begin with {}", name, given, type, defaults);
}

/// Checks that the fields which a later version added to a struct, from byte `known` on, are zero.
[[gnu::noinline]] inline Result<void> check_later_fields(const void* struct_of_caller, std::size_t given,
                                                         std::size_t known, const char* name) {
  const auto* const bytes = static_cast<const unsigned char*>(struct_of_caller);
  for (std::size_t i = known; i < given; ++i)
    if (bytes[i] != 0)
      return usage("the {} set a field that this version of the library does not have", name);
  return {};
}

/// Returns the fields that this version knows of a struct that a caller of this or a later version gave.
template <class Struct>
Result<Struct> known_fields(const Struct* given, const char* name, const char* type, const char* defaults) {
  FVM_TRY(check_size(given->size, sizeof(Struct), name, type, defaults));
  FVM_TRY(check_later_fields(given, given->size, sizeof(Struct), name));
  Struct known;
  std::memcpy(&known, given, sizeof known);
  return known;
}

}  // namespace forestvm::c_api
