// Text out of a user's file: checks that it is UTF-8, and prepares it for error messages.
#include "frontend/file_text.hpp"

#include <cstdint>

namespace forestvm::frontend {
namespace {

constexpr std::uint32_t kBroken = 0xffffffff;

/// Returns the code point that starts at `at`, and moves `at` past it; `kBroken` if there is none.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
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
  if (more == 9 || text.size() - at <= more) return kBroken;
  std::uint32_t point = more == 0 ? lead : lead & (0x3fu >> more);
  for (std::size_t i = 1; i <= more; ++i) {
    if ((byte(at + i) & 0xc0u) != 0x80u) return kBroken;
    point = (point << 6) | (byte(at + i) & 0x3fu);
  }
  at += more + 1;
  const bool overlong = (more == 2 && point < 0x800) || (more == 3 && point < 0x10000);
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  return overlong || surrogate || point > 0x10ffff ? kBroken : point;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();)
    if (next_code_point(text, at) == kBroken) return false;
  return true;
}

std::string printable(std::string_view text, std::size_t limit) {
  const bool cut = text.size() > limit;
  if (cut) {
    while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0u) == 0x80u) --limit;
    text = text.substr(0, limit);
  }
  const bool keep_high = is_utf8(text);
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (byte > 0x7f && !keep_high)) {
      constexpr char digits[] = "0123456789abcdef";
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  return cut ? out + "..." : out;
}

std::string in_quotes(std::string_view text, std::size_t limit) { return '"' + printable(text, limit) + '"'; }

}  // namespace forestvm::frontend
