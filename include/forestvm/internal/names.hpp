// The texts of enumerations that are declared in the rows of .def files.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <forestvm/contract.hpp>
#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/transform.hpp>

namespace forestvm {

inline std::string_view name_of(OutputKind kind) {
  switch (kind) {
#define FVM_OUTPUT(number, Name, text, meaning) \
  case OutputKind::Name:                        \
    return text;
#include <forestvm/core/outputs.def>
  }
  return "?";
}

inline std::string_view name_of(Transform transform) {
  switch (transform) {
#define FVM_TRANSFORM(number, Name, text, meaning) \
  case Transform::Name:                            \
    return text;
#include <forestvm/core/transforms.def>
  }
  return "?";
}

inline std::string_view name_of(ClassRule rule) {
  switch (rule) {
#define FVM_CLASS_RULE(number, Name, text, meaning) \
  case ClassRule::Name:                             \
    return text;
#include <forestvm/core/class_rules.def>
  }
  return "?";
}

inline std::string_view name_of(Layout layout) {
  switch (layout) {
#define FVM_LAYOUT(number, Name, text, word, View, meaning) \
  case Layout::Name:                                        \
    return text;
#include <forestvm/core/layouts.def>
  }
  return "?";
}

inline std::string_view name_of(LaunchDimension dimension) {
  switch (dimension) {
#define FVM_DIMENSION(number, Name, text, meaning) \
  case LaunchDimension::Name:                      \
    return text;
#include <forestvm/core/dimensions.def>
  }
  return "?";
}

inline std::string_view name_of(ReductionForm form) {
  switch (form) {
#define FVM_REDUCTION_FORM(number, Name, text, meaning) \
  case ReductionForm::Name:                             \
    return text;
#include <forestvm/core/reduction_forms.def>
  }
  return "?";
}

inline std::string_view name_of(AccumulatorKind kind) {
  switch (kind) {
#define FVM_ACCUMULATOR_KIND(number, Name, text, Element, meaning) \
  case AccumulatorKind::Name:                                      \
    return text;
#include <forestvm/core/accumulator_kinds.def>
  }
  return "?";
}

inline std::string_view name_of(Contract contract) {
  switch (contract) {
#define FVM_CONTRACT(number, Name, text, meaning) \
  case Contract::Name:                            \
    return text;
#include <forestvm/internal/contracts.def>
  }
  return "?";
}

/// Whether the rows of a .def stand in the order of their numbers, from 0 on and without gaps: by_name goes
/// over them, and tables are indexed by them.
constexpr bool count_from_zero(std::initializer_list<unsigned> numbers) {
  unsigned next = 0;
  for (const unsigned number : numbers)
    if (number != next++) return false;
  return true;
}
static_assert(count_from_zero({
#define FVM_OUTPUT(number, ...) number,
#include <forestvm/core/outputs.def>
}));
static_assert(count_from_zero({
#define FVM_TRANSFORM(number, ...) number,
#include <forestvm/core/transforms.def>
}));
static_assert(count_from_zero({
#define FVM_CLASS_RULE(number, ...) number,
#include <forestvm/core/class_rules.def>
}));
static_assert(count_from_zero({
#define FVM_LAYOUT(number, ...) number,
#include <forestvm/core/layouts.def>
}));
static_assert(count_from_zero({
#define FVM_DIMENSION(number, ...) number,
#include <forestvm/core/dimensions.def>
}));
static_assert(count_from_zero({
#define FVM_REDUCTION_FORM(number, ...) number,
#include <forestvm/core/reduction_forms.def>
}));
static_assert(count_from_zero({
#define FVM_ACCUMULATOR_KIND(number, ...) number,
#include <forestvm/core/accumulator_kinds.def>
}));
static_assert(count_from_zero({
#define FVM_CONTRACT(number, ...) number,
#include <forestvm/internal/contracts.def>
}));

/// Returns whether a number read from a file is an enumerator, declared by some row.
template <class Enum>
bool is_declared(Enum value) {
  return name_of(value) != "?";
}

/// Returns the enumerator with this name; none if no row has it. Enumerators count from 0 without gaps.
template <class Enum>
std::optional<Enum> by_name(std::string_view name) {
  for (unsigned i = 0; is_declared(static_cast<Enum>(i)); ++i)
    if (name_of(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace forestvm
