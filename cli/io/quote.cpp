// See quote.hpp.
#include "cli/io/quote.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::cli {

std::string single_quoted(std::string_view text, std::size_t longest) {
  return formatted("'{}'", printable(text, longest));
}

std::string quoted_list(std::span<const std::string> names, std::size_t count) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + single_quoted(name);
  return names.size() < count ? formatted("{} and {} more", out, count - names.size()) : out;
}

}  // namespace forestvm::cli
