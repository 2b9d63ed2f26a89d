// See quote.hpp.
#include "cli/io/quote.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::cli {

std::string escaped(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
    } else {
      out += c;
    }
  }
  return out;
}

std::string in_quotes(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return formatted("'{}'", escaped(text));
  std::size_t cut = longest;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; };
  while (cut > 0 && continues(text[cut])) --cut;  // Never cuts a UTF-8 character.
  return formatted("'{}…'", escaped(text.substr(0, cut)));
}

std::string quoted_list(std::span<const std::string> names, std::size_t count) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + in_quotes(name);
  return names.size() < count ? formatted("{} and {} more", out, count - names.size()) : out;
}

}  // namespace forestvm::cli
