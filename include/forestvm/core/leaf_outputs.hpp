// Computes the outputs of leaves that are linear functions of the row: see core/leaf_functions.hpp. In: a program's
// functions, and the values of a row that they read. Shared by host and device code.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/leaf_functions.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

/// A term of a function, with the index of its feature among the features that some function reads, which ascend.
struct IndexedTerm {
  double coefficient;
  std::uint32_t feature;
  std::uint32_t index;
};

/// The functions of a program's leaves.
struct LeafOutputs {
  const LeafFunction* functions;
  const IndexedTerm* terms;
  std::uint32_t count;     ///< Number of functions; 0 if the program's leaves have no functions.
  std::uint32_t features;  ///< Number of features that some function reads.
};

/// Returns the output of the function with this number. value_of(term) returns the value of the term's feature, 0
/// if it is tiny. A number that no function has, which occurs only in a damaged program, gives the first function.
template <class ValueOf>
FVM_INLINE double leaf_output(const LeafOutputs& leaves, double number, const ValueOf& value_of) {
  const bool exists = number >= 0 && number < static_cast<double>(leaves.count);
  const LeafFunction& function = leaves.functions[exists ? static_cast<std::size_t>(number) : 0];
  double sum = function.constant;
  const IndexedTerm* const terms = leaves.terms + function.first_term;
  for (std::uint32_t i = 0; i < function.term_count; ++i) {
    const double product = terms[i].coefficient * value_of(terms[i]);
    sum += product;
  }
  if (sum == sum) return sum;  // NaN comes from a value that is NaN, or from infinities
  for (std::uint32_t i = 0; i < function.term_count; ++i)
    if (const double x = value_of(terms[i]); x != x) return function.value;
  return sum;
}

}  // namespace forestvm
