// Names of tests with parameters.
#pragma once

#include <cctype>
#include <string>

namespace forestvm::support {

/// Returns a name that GoogleTest accepts: letters and digits.
inline std::string test_name(std::string text) {
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return text;
}

}  // namespace forestvm::support
