// Model -> its normal form.
//
//   f3 <= 0.5 ? 1 : 2, missing counts as 0     ->     f3 < 0.50000006 ? 1 : 2, missing left
#include "scheduler/compilation.hpp"

namespace forestvm::scheduler {

Result<void> normalize(Compilation& compilation) {
  if (is_normal(compilation.model)) return {};
  FVM_CHECK(compilation.rewritable != nullptr);
  FVM_ASSIGN(compilation.row_rules, normalize(*compilation.rewritable));
  return {};
}

}  // namespace forestvm::scheduler
