// encode(u8) walks rows whose values were replaced by their ranks among the model's thresholds, in bytes:
// trees then have a layout that reads rank codes. `auto`, the default, encodes rows if a layout reads codes;
// `none` never does.
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_Encode(LoopTree& tree, const DirectiveAt& at) {
  if (at.loop(0) == "u16")
    return refused(
        "codes are bytes: a feature with more than 255 thresholds takes a column for each 255; "
        "encode(u8) does that");
  return request(tree.program.encode, at.loop(0), at);
}

}  // namespace forestvm::scheduler
