// Numbers in messages of errors.
#pragma once

#include <array>
#include <charconv>
#include <string>

namespace forestvm {

/// Returns the shortest text that is read as this number, or its decimal digits if it is whole.
template <class Number>
std::string number_text(Number number) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

}  // namespace forestvm
