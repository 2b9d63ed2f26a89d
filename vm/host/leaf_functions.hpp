// The linear functions of a loaded program's leaves: see core/leaf_functions.hpp. Each knows the places of its features
// in a list of those that some function reads, so that a row's values are copied once, for all trees.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/program.hpp>

namespace forestvm::host {

class LeafFunctions {
 public:
  /// Makes an object without functions.
  LeafFunctions() = default;
  /// Reads the sections of `program`, a copy of which must live as long.
  explicit LeafFunctions(const Program& program);

  bool empty() const { return functions_.empty(); }

  /// Returns the features that functions read, ascending.
  std::span<const std::uint32_t> features() const { return features_; }

  /// Returns the output of the function with this number for a row, of which `values` has features(). A number without
  /// a function, which only a damaged program has, stands for the first function.
  double output(double number, const double* values) const {
    const bool exists = number >= 0 && number < static_cast<double>(functions_.size());
    const LeafFunction& function = functions_[exists ? static_cast<std::size_t>(number) : 0];
    double sum = function.constant;
    const Term* const end = terms_.data() + function.first_term + function.term_count;
    for (const Term* term = terms_.data() + function.first_term; term != end; ++term) {
      const double x = values[term->place];
      if (std::isnan(x)) return function.value;
      const double product = term->coefficient * x;
      sum += product;
    }
    return sum;
  }

 private:
  struct Term {
    double coefficient;
    std::size_t place;  ///< Index of its feature in features_.
  };

  std::span<const LeafFunction> functions_;
  std::vector<Term> terms_;
  std::vector<std::uint32_t> features_;
};

}  // namespace forestvm::host
