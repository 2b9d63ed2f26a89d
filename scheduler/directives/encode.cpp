// encode(u8) walks rows whose values were replaced by their ranks among the thresholds. Walkers of such rows
// do not exist yet: rows are walked as they are, which is what `none`, and for now `auto`, ask for.
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_Encode(LoopTree&, const DirectiveAt& at) {
  const std::string& code = at.loop(0);
  if (code == "none" || code == "auto") return {};
  return refused("", "no walker takes rows encoded as " + code + " yet; encode(none) walks them as they are");
}

}  // namespace forestvm::scheduler
