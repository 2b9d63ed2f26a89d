// vectorReduce(t0, 8) adds the private copies of a parallel loop's sums eight at a time. Each sum
// still adds the copies in order, so no bit changes.
#include <bit>

#include <forestvm/internal/formatted.hpp>

#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_VectorReduce(LoopTree& tree, const DirectiveAt& at) {
  const std::uint64_t width = at.number(1, tree);
  if (!std::has_single_bit(width) || width < 2 || width > kMaxReductionWidth)
    return refused(formatted("a width of {}; there are 2, 4, 8 and {}", width, kMaxReductionWidth));
  return request_reduction(tree, at, {ReductionForm::Vector, static_cast<std::uint32_t>(width)});
}

}  // namespace forestvm::scheduler
