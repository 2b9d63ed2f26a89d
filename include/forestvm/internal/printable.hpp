// Prepares text out of a user's file, table or command line for messages. These functions are inline, because frontend
// and vm, which share no library, call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace forestvm {

namespace detail {

inline constexpr std::uint32_t kNoCodePoint = UINT32_MAX;

/// Returns the code point that starts at `at`, and moves `at` past it; kNoCodePoint if there is none.
inline std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t lead = byte(at);
  const std::size_t more = lead < 0x80   ? 0
                           : lead < 0xc2 ? 9
                           : lead < 0xe0 ? 1
                           : lead < 0xf0 ? 2
                           : lead < 0xf5 ? 3
                                         : 9;
  if (more == 9 || text.size() - at <= more) return kNoCodePoint;
  std::uint32_t point = more == 0 ? lead : lead & (0x3fu >> more);
  for (std::size_t i = 1; i <= more; ++i) {
    if ((byte(at + i) & 0xc0u) != 0x80u) return kNoCodePoint;
    point = (point << 6) | (byte(at + i) & 0x3fu);
  }
  at += more + 1;
  const bool overlong = (more == 2 && point < 0x800) || (more == 3 && point < 0x10000);
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  return overlong || surrogate || point > 0x10ffff ? kNoCodePoint : point;
}

}  // namespace detail

/// Returns true if `text` is well-formed UTF-8 (no overlong forms, no surrogates).
inline bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();)
    if (detail::next_code_point(text, at) == detail::kNoCodePoint) return false;
  return true;
}

/// Returns the text in UTF-8 and on one line, so that it can neither break a line nor control a terminal: control
/// characters become \n, \r, \t or \xNN for each of their bytes, and bytes that are not UTF-8 become \xNN. At most
/// `limit` bytes of the text are shown, and "…" for the others.
[[gnu::cold]] inline std::string printable(std::string_view text, std::size_t limit = 80) {
  const bool cut = text.size() > limit;
  if (cut) {
    while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0u) == 0x80u) --limit;
    text = text.substr(0, limit);
  }
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::uint32_t point = detail::next_code_point(text, at);
    if (point == detail::kNoCodePoint) at = begin + 1;
    if (point == '\n' || point == '\r' || point == '\t') {
      out += {'\\', point == '\n' ? 'n' : point == '\r' ? 'r' : 't'};
    } else if (point < 0x20 || (point >= 0x7f && point < 0xa0) || point == detail::kNoCodePoint) {
      constexpr char digits[] = "0123456789abcdef";
      for (std::size_t i = begin; i < at; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      }
    } else {
      out += text.substr(begin, at - begin);
    }
  }
  return cut ? out + "…" : out;
}

/// Returns printable(text, limit) in double quotes.
[[gnu::cold]] inline std::string in_quotes(std::string_view text, std::size_t limit = 80) {
  return '"' + printable(text, limit) + '"';
}

}  // namespace forestvm
