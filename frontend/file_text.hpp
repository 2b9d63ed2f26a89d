// Text out of a user's file: checks that it is UTF-8, and prepares it for error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forestvm::frontend {

/// Returns true if `text` is well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);

/// Returns at most `limit` bytes of `text`, on one line: control characters, and every byte above 0x7f if the text
/// is not UTF-8, become \xNN.
std::string printable(std::string_view text, std::size_t limit = 80);

/// Returns printable(text, limit) in double quotes.
std::string in_quotes(std::string_view text, std::size_t limit = 80);

}  // namespace forestvm::frontend
