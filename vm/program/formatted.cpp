// See forestvm/internal/formatted.hpp.
#include <forestvm/internal/formatted.hpp>

namespace forestvm {

namespace {

void append(std::string& text, FormatKind kind, FormatValue value) {
  switch (kind) {
    case FormatKind::End:
      return;
    case FormatKind::Signed:
      text += std::to_string(static_cast<std::int64_t>(value.number));
      return;
    case FormatKind::Unsigned:
      text += std::to_string(value.number);
      return;
    case FormatKind::Character:
      text += static_cast<char>(value.number);
      return;
    case FormatKind::Characters:
      text += static_cast<const char*>(value.text);
      return;
    case FormatKind::View:
      text += *static_cast<const std::string_view*>(value.text);
      return;
    case FormatKind::String:
      text += *static_cast<const std::string*>(value.text);
      return;
  }
}

}  // namespace

std::string write_format(const char* text, const FormatKind* kinds, const FormatValue* values) {
  std::string written;
  for (; *text != 0; ++text) {
    if (text[0] != '{' || text[1] != '}') {
      written += *text;
      continue;
    }
    append(written, *kinds++, *values++);
    ++text;
  }
  return written;
}

Failure refuse_formatted(std::string_view where, const char* text, const FormatKind* kinds,
                         const FormatValue* values) {
  return refused(where, write_format(text, kinds, values));
}

}  // namespace forestvm
