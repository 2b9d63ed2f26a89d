// How a piece of a user's input is shown inside a one-line message: in quotes, control characters escaped,
// long text cut.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace forestvm::cli {

/// The text with control characters written as \n, \t, \x1b, …: it can neither break a line nor drive a
/// terminal. UTF-8 passes as it is.
std::string escaped(std::string_view text);

/// 'text', escaped, cut after `longest` bytes.
std::string in_quotes(std::string_view text, std::size_t longest = 60);

/// 'a', 'b', 'c' and 12 more: the first of `count` names.
std::string quoted_list(std::span<const std::string> names, std::size_t count);

}  // namespace forestvm::cli
