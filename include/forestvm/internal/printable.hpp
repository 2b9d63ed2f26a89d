// Prepares text out of a user's file, table or command line for messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forestvm {

/// Returns true if `text` is well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);

/// Returns the text in UTF-8 and on one line, so that it can neither break a line nor control a terminal: control
/// characters become \n, \r, \t or \xNN for each of their bytes, and bytes that are not UTF-8 become \xNN. At most
/// `limit` bytes of the text are shown, and "…" for the others.
std::string printable(std::string_view text, std::size_t limit = 80);

/// Returns printable(text, limit) in double quotes.
std::string in_quotes(std::string_view text, std::size_t limit = 80);

}  // namespace forestvm
