// Texts with numbers and names in them, such as messages of errors. One function writes all of them, which keeps
// the code of its many callers small.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <forestvm/result.hpp>

namespace forestvm {

/// The kinds of values that a FormatValue holds.
enum class FormatKind : char { End, Signed, Unsigned, Character, Characters, View, String };

/// An argument of formatted(): a number, a character, or the address of a text.
union FormatValue {
  std::uint64_t number;
  const void* text;
};

template <class T>
consteval FormatKind format_kind() {
  if constexpr (std::is_same_v<T, std::string>)
    return FormatKind::String;
  else if constexpr (std::is_same_v<T, std::string_view>)
    return FormatKind::View;
  else if constexpr (std::is_convertible_v<T, const char*>)
    return FormatKind::Characters;
  else {
    static_assert(std::integral<T> && !std::is_same_v<T, bool>);
    if (std::is_same_v<T, char>) return FormatKind::Character;
    return std::is_signed_v<T> ? FormatKind::Signed : FormatKind::Unsigned;
  }
}

template <FormatKind... kKinds>
inline constexpr FormatKind kFormatKinds[] = {kKinds..., FormatKind::End};

template <class T>
[[gnu::always_inline]] inline FormatValue format_value(const T& value) {
  if constexpr (std::integral<T>)
    return {.number = static_cast<std::uint64_t>(value)};
  else if constexpr (std::is_convertible_v<T, const char*>)
    return {.text = static_cast<const char*>(value)};
  else
    return {.text = &value};
}

/// A text in which each {} stands for an argument. A text with more or fewer {} than arguments does not compile.
template <class... Arguments>
struct FormatText {
  consteval FormatText(const char* format) : text(format) {
    std::size_t count = 0;
    for (const char* at = format; *at != 0; ++at) count += at[0] == '{' && at[1] == '}' ? 1 : 0;
    if (count != sizeof...(Arguments)) throw "each {} of the text needs an argument";
  }
  const char* text;
};

/// Appends an argument to a text.
[[gnu::cold]] inline void append_format(std::string& text, FormatKind kind, FormatValue value) {
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

/// Does what formatted() and refused() say. Neither function is a template, so that a library has one copy of each.
[[gnu::cold, gnu::noinline]] inline std::string write_format(const char* text, const FormatKind* kinds,
                                                             const FormatValue* values) {
  std::string written;
  for (; *text != 0; ++text) {
    if (text[0] != '{' || text[1] != '}' || *kinds == FormatKind::End) {
      written += *text;
      continue;
    }
    append_format(written, *kinds++, *values++);
    ++text;
  }
  return written;
}

[[gnu::cold, gnu::noinline]] inline Failure refuse_formatted(std::string_view where, const char* text,
                                                             const FormatKind* kinds,
                                                             const FormatValue* values) {
  return refused(where, write_format(text, kinds, values));
}

[[gnu::cold, gnu::noinline]] inline Failure refuse_formatted(const char* where, const char* text,
                                                             const FormatKind* kinds,
                                                             const FormatValue* values) {
  return refuse_formatted(std::string_view(where), text, kinds, values);
}

/// Returns the text with each {} replaced by its argument: a whole number, a character or a text.
template <class... Arguments>
std::string formatted(FormatText<std::type_identity_t<Arguments>...> format, const Arguments&... arguments) {
  const FormatValue values[] = {format_value(arguments)...};
  return write_format(format.text, kFormatKinds<format_kind<Arguments>()...>, values);
}

/// Returns a Usage error: the caller made a mistake, which the text and its arguments describe.
template <class First, class... Rest>
Failure usage(FormatText<std::type_identity_t<First>, std::type_identity_t<Rest>...> format,
              const First& first, const Rest&... rest) {
  return usage(formatted(format, first, rest...));
}

/// Returns a Refused error, whose message is the text with its arguments. `where` is a view or a literal.
template <class First, class... Rest>
Failure refused(std::string_view where,
                FormatText<std::type_identity_t<First>, std::type_identity_t<Rest>...> format,
                const First& first, const Rest&... rest) {
  const FormatValue values[] = {format_value(first), format_value(rest)...};
  return refuse_formatted(where, format.text, kFormatKinds<format_kind<First>(), format_kind<Rest>()...>,
                          values);
}
template <class First, class... Rest>
Failure refused(const char* where,
                FormatText<std::type_identity_t<First>, std::type_identity_t<Rest>...> format,
                const First& first, const Rest&... rest) {
  const FormatValue values[] = {format_value(first), format_value(rest)...};
  return refuse_formatted(where, format.text, kFormatKinds<format_kind<First>(), format_kind<Rest>()...>,
                          values);
}

}  // namespace forestvm
