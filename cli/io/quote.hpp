// Shows pieces of a user's input in messages of one line.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <forestvm/internal/printable.hpp>

namespace forestvm::cli {

/// Returns all of a text as printable() shows it.
inline std::string escaped(std::string_view text) { return printable(text, text.size()); }

/// Returns printable(text, longest) in single quotes. This is how messages show words of
/// arguments and of files of rows.
std::string single_quoted(std::string_view text, std::size_t longest = 60);

/// Returns "'a', 'b', 'c' and 12 more", given the first of `count` names.
std::string quoted_list(std::span<const std::string> names, std::size_t count);

}  // namespace forestvm::cli
