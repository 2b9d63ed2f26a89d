// See table.hpp.
#include "cli/io/table.hpp"

namespace forestvm::cli {

Error wrong_width(std::size_t columns, std::size_t width) {
  return refused("has " + std::to_string(columns) + " columns, the model has " + std::to_string(width) +
                 " features");
}

}  // namespace forestvm::cli
