// Shows a piece of a user's input in a one-line message: in quotes, control characters escaped, long text
// cut.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace forestvm::cli {

/// Returns the text with control characters written as \n, \t, \x1b, …, so that it can neither break a line
/// nor control a terminal. UTF-8 is kept.
std::string escaped(std::string_view text);

/// Returns 'text' in quotes, escaped, cut after `longest` bytes.
std::string in_quotes(std::string_view text, std::size_t longest = 60);

/// Returns "'a', 'b', 'c' and 12 more", given the first of `count` names.
std::string quoted_list(std::span<const std::string> names, std::size_t count);

}  // namespace forestvm::cli
