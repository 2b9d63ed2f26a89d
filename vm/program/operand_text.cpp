// See operand_text.hpp.
#include "vm/program/operand_text.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <type_traits>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

namespace forestvm::bytecode {
namespace {

/// Returns the name of an enumerator; "?" if no enumerator has the value. A cast to the enumeration alone would
/// take 256 for 0.
template <class Enum>
std::string_view name_at(std::uint32_t value) {
  if (value > std::numeric_limits<std::underlying_type_t<Enum>>::max()) return "?";
  return name_of(static_cast<Enum>(value));
}

struct Enumeration {
  OperandKind kind;
  std::string_view (*name_at)(std::uint32_t value);
};

/// The kinds that are written by name, because their rows have no prefix.
constexpr Enumeration kEnumerations[] = {
    {OperandKind::Output, name_at<OutputKind>},  {OperandKind::TransformKind, name_at<Transform>},
    {OperandKind::Rule, name_at<ClassRule>},     {OperandKind::Dimension, name_at<LaunchDimension>},
    {OperandKind::Form, name_at<ReductionForm>}, {OperandKind::Targets, name_at<TargetSet>},
};

constexpr const Enumeration* enumeration(OperandKind kind) {
  for (const Enumeration& row : kEnumerations)
    if (row.kind == kind) return &row;
  return nullptr;
}

static_assert(std::all_of(std::begin(kOperandInfo), std::end(kOperandInfo),
                          [](const OperandInfo& row) {
                            return (*row.prefix == '\0') == (enumeration(row.kind) != nullptr);
                          }),
              "an operand has a prefix or a line in kEnumerations");

std::uint32_t largest(OperandKind kind) {
  return info(kind).size == OperandSize::Small ? UINT8_MAX : UINT32_MAX;
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Takes `prefix` from the start of `text`; a blank in it stands for any number of blanks, but one at least.
bool take(std::string_view& text, std::string_view prefix) {
  for (const char expected : prefix) {
    if (text.empty() || (expected == ' ' ? !is_blank(text.front()) : text.front() != expected)) return false;
    text.remove_prefix(1);
    while (expected == ' ' && !text.empty() && is_blank(text.front())) text.remove_prefix(1);
  }
  return true;
}

}  // namespace

std::string operand_text(OperandKind kind, std::uint32_t value) {
  if (const Enumeration* const names = enumeration(kind)) return std::string(names->name_at(value));
  return info(kind).prefix + std::to_string(value);
}

std::optional<std::uint32_t> operand_value(OperandKind kind, std::string_view text) {
  std::uint32_t value = 0;
  if (const Enumeration* const names = enumeration(kind)) {
    for (; names->name_at(value) != "?"; ++value)
      if (names->name_at(value) == text) return value;
    return std::nullopt;
  }
  if (!take(text, info(kind).prefix)) return std::nullopt;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value > largest(kind)) return std::nullopt;
  return value;
}

std::string operand_form(OperandKind kind) {
  if (const Enumeration* const names = enumeration(kind)) {
    std::string text = "one of ";
    for (std::uint32_t value = 0; names->name_at(value) != "?"; ++value)
      text += (value == 0 ? "" : ", ") + std::string(names->name_at(value));
    return text;
  }
  std::string_view prefix = info(kind).prefix;
  if (is_blank(prefix.back())) prefix.remove_suffix(1);
  return formatted("'{}' and a number up to {} ({})", prefix, largest(kind), meaning_of(kind));
}

}  // namespace forestvm::bytecode
