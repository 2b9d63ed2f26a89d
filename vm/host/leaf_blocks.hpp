// The linear functions of a loaded program's leaves in blocks of four terms. All functions have equally many blocks, so
// that the number of turns of the loop over terms does not depend on a row's leaves.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <forestvm/internal/leaf_functions.hpp>

namespace forestvm::host {

class LeafBlocks {
 public:
  /// Makes an object without functions.
  LeafBlocks() = default;
  explicit LeafBlocks(const LeafFunctions& functions);

  /// Returns what leaf_output returns for leaf `number`. `functions` must be those that this object was made of, and
  /// not empty; `values` are a row's values of the features that functions read.
  double output(const LeafFunctions& functions, double number, const double* values) const {
    const Block* const first = blocks_of(number);
    double sum = first->constant;
    for (std::size_t i = 0; i < filled_; ++i) {
      const double* const coefficients = first[i].coefficients;
      const std::uint32_t* const indices = first[i].indices;
      sum += coefficients[0] * values[indices[0]];
      sum += coefficients[1] * values[indices[1]];
      sum += coefficients[2] * values[indices[2]];
      sum += coefficients[3] * values[indices[3]];
    }
    // Blocks are filled with zero terms. A zero term changes a sum only if the sum is a zero or the value is NaN or
    // infinite; rare_output() handles these. It also handles functions with more terms, whose constant is NaN.
    const std::uint64_t size = std::bit_cast<std::uint64_t>(sum) << 1;
    if (size - 1 < kInfinity) return sum;
    return rare_output(functions, number, values);
  }

 private:
  static constexpr std::size_t kTerms = 4;
  /// The bits of infinity, shifted left by one so that the sign is gone; the bits of NaN are above it.
  static constexpr std::uint64_t kInfinity = 0xffe0000000000000;

  /// Some terms of a function. The last two fields count only in the function's first block.
  struct alignas(64) Block {
    double coefficients[kTerms];
    std::uint32_t indices[kTerms];
    double constant;
    double value;  ///< Output if a value is missing.
  };
  static_assert(sizeof(Block) == 64);

  const Block* blocks_of(double number) const {
    const bool exists = number >= 0 && number < count_;
    return blocks_.data() +
           (exists ? static_cast<std::uint32_t>(static_cast<std::int64_t>(number)) : 0) * width_;
  }

  /// Does what output() does for rows with missing values, sums that are zero, and functions of many terms.
  double rare_output(const LeafFunctions& functions, double number, const double* values) const;

  std::vector<Block> blocks_;
  std::size_t width_ = 0;   ///< Blocks of each function.
  std::size_t filled_ = 0;  ///< width_, or 0 if no function has a term: then rows have no values for them.
  double count_ = 0;        ///< Number of functions.
};

}  // namespace forestvm::host
