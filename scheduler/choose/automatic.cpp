// The schedule for those who do not want to choose: blocks of 64 rows in parallel, tree by tree, eight rows
// in lockstep. The layout is left to the compiler: array where it wastes little, else sparse.
#include <forestvm/compile.hpp>

namespace forestvm {

Schedule automatic_schedule(const Model&) {
  return Schedule().tile("batch", "b0", "b1", 64).reorder("b0", "tree", "b1").parallel("b0").interleave("b1");
}

}  // namespace forestvm
