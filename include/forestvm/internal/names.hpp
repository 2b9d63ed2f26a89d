// The texts of enumerations that are declared in the rows of .def files.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/contract.hpp>
#include <forestvm/core/transform.hpp>

namespace forestvm {

/// The number and the text of a row.
struct NamedRow {
  unsigned number;
  std::string_view text;
};

/// Returns the texts of rows by their numbers. Rows that do not count from 0 on without gaps do not compile:
/// by_name goes over them, and tables are indexed by them.
template <std::size_t Count>
consteval std::array<std::string_view, Count> texts_of(const NamedRow (&rows)[Count]) {
  std::array<std::string_view, Count> texts;
  for (std::size_t i = 0; i < Count; ++i) {
    if (rows[i].number != i) throw "rows of a .def do not stand in the order of their numbers";
    texts[i] = rows[i].text;
  }
  return texts;
}

/// The texts of an enumeration's rows.
template <class Enum>
struct Texts;

template <>
struct Texts<OutputKind> {
  static constexpr auto kByNumber = texts_of({
#define FVM_OUTPUT(number, Name, text, meaning) {number, text},
#include <forestvm/core/outputs.def>
  });
};

template <>
struct Texts<Transform> {
  static constexpr auto kByNumber = texts_of({
#define FVM_TRANSFORM(number, Name, text, meaning) {number, text},
#include <forestvm/core/transforms.def>
  });
};

template <>
struct Texts<ClassRule> {
  static constexpr auto kByNumber = texts_of({
#define FVM_CLASS_RULE(number, Name, text, meaning) {number, text},
#include <forestvm/core/class_rules.def>
  });
};

template <>
struct Texts<Pair> {
  static constexpr auto kByNumber = texts_of({
#define FVM_PAIR(number, Name, text, meaning) {number, text},
#include <forestvm/core/pairs.def>
  });
};

template <>
struct Texts<Layout> {
  static constexpr auto kByNumber = texts_of({
#define FVM_LAYOUT(number, Name, text, word, View, meaning) {number, text},
#include <forestvm/core/layouts.def>
  });
};

template <>
struct Texts<LaunchDimension> {
  static constexpr auto kByNumber = texts_of({
#define FVM_DIMENSION(number, Name, text, meaning) {number, text},
#include <forestvm/core/dimensions.def>
  });
};

template <>
struct Texts<TargetSet> {
  static constexpr auto kByNumber = texts_of({
#define FVM_TARGET_SET(number, Name, text, meaning) {number, text},
#include <forestvm/core/target_sets.def>
  });
};

template <>
struct Texts<ReductionForm> {
  static constexpr auto kByNumber = texts_of({
#define FVM_REDUCTION_FORM(number, Name, text, meaning) {number, text},
#include <forestvm/core/reduction_forms.def>
  });
};

template <>
struct Texts<AccumulatorKind> {
  static constexpr auto kByNumber = texts_of({
#define FVM_ACCUMULATOR_KIND(number, Name, text, Element, meaning) {number, text},
#include <forestvm/core/accumulator_kinds.def>
  });
};

template <>
struct Texts<Contract> {
  static constexpr auto kByNumber = texts_of({
#define FVM_CONTRACT(number, Name, text, meaning) {number, text},
#include <forestvm/core/contracts.def>
  });
};

/// Returns the text of an enumerator; "?" if no row declares it.
template <class Enum>
constexpr auto name_of(Enum value) -> decltype(std::string_view(Texts<Enum>::kByNumber[0])) {
  const auto number = static_cast<std::size_t>(value);
  return number < Texts<Enum>::kByNumber.size() ? Texts<Enum>::kByNumber[number] : "?";
}

/// Returns whether a number read from a file is an enumerator, declared by some row.
template <class Enum>
bool is_declared(Enum value) {
  return static_cast<std::size_t>(value) < Texts<Enum>::kByNumber.size();
}

/// Returns the enumerator with this name; none if no row has it. Enumerators count from 0 without gaps.
template <class Enum>
std::optional<Enum> by_name(std::string_view name) {
  for (unsigned i = 0; is_declared(static_cast<Enum>(i)); ++i)
    if (name_of(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace forestvm
