// See table.hpp.
#include "cli/io/table.hpp"

#include <utility>

#include <forestvm/internal/calls.hpp>

namespace forestvm::cli {

Error not_exact(std::string place, const std::string& number) {
  return forestvm::not_exact(std::move(place), number, "give the rows as a float32 .npy array");
}

Error wrong_width(std::size_t columns, std::size_t width) {
  return refused("", "has " + std::to_string(columns) + " columns, the model has " + std::to_string(width) +
                         " features");
}

}  // namespace forestvm::cli
