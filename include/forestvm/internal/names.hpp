// The texts of enumerations that are declared in the rows of .def files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <forestvm/contract.hpp>
#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/transform.hpp>

namespace forestvm {

inline std::string_view name_of(OutputKind kind) {
  switch (kind) {
#define FVM_OUTPUT(Name, text, meaning) \
  case OutputKind::Name:                \
    return text;
#include <forestvm/core/outputs.def>
  }
  return "?";
}

inline std::string_view name_of(Transform transform) {
  switch (transform) {
#define FVM_TRANSFORM(Name, text, meaning) \
  case Transform::Name:                    \
    return text;
#include <forestvm/core/transforms.def>
  }
  return "?";
}

inline std::string_view name_of(ClassRule rule) {
  switch (rule) {
#define FVM_CLASS_RULE(Name, text, meaning) \
  case ClassRule::Name:                     \
    return text;
#include <forestvm/core/class_rules.def>
  }
  return "?";
}

inline std::string_view name_of(Layout layout) {
  switch (layout) {
#define FVM_LAYOUT(Name, text, word, View, meaning) \
  case Layout::Name:                                \
    return text;
#include <forestvm/core/layouts.def>
  }
  return "?";
}

inline std::string_view name_of(LaunchDimension dimension) {
  switch (dimension) {
#define FVM_DIMENSION(Name, text, meaning) \
  case LaunchDimension::Name:              \
    return text;
#include <forestvm/core/dimensions.def>
  }
  return "?";
}

inline std::string_view name_of(ReductionForm form) {
  switch (form) {
#define FVM_REDUCTION_FORM(Name, text, meaning) \
  case ReductionForm::Name:                     \
    return text;
#include <forestvm/core/reduction_forms.def>
  }
  return "?";
}

inline std::string_view name_of(AccumulatorKind kind) {
  switch (kind) {
#define FVM_ACCUMULATOR_KIND(Name, text, Element, meaning) \
  case AccumulatorKind::Name:                              \
    return text;
#include <forestvm/core/accumulator_kinds.def>
  }
  return "?";
}

inline std::string_view name_of(Contract contract) {
  switch (contract) {
#define FVM_CONTRACT(Name, text, meaning) \
  case Contract::Name:                    \
    return text;
#include <forestvm/internal/contracts.def>
  }
  return "?";
}

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
