// See table.hpp.
#include "cli/io/table.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::cli {

Error wrong_width(std::size_t columns, std::size_t width) {
  return refused(formatted("has {} columns, the model has {} features", columns, width));
}

}  // namespace forestvm::cli
