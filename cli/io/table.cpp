// See table.hpp.
#include "cli/io/table.hpp"

#include <utility>

namespace forestvm::cli {

Error not_exact(std::string place, const std::string& number) {
  return refused(std::move(place),
                 number +
                     " is no float32 number, and rounded it could go another way in this model, which "
                     "compares in float64; if rounding is meant, give the rows as a float32 .npy array");
}

Error wrong_width(std::size_t columns, std::size_t width) {
  return refused("", "has " + std::to_string(columns) + " columns, the model has " + std::to_string(width) +
                         " features");
}

}  // namespace forestvm::cli
