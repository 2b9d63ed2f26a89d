// The CPU targets that tests can run on this machine: targets of this build that this CPU supports.
#pragma once

#include <string>
#include <vector>

#include <forestvm/backend.hpp>

#include "vm/host/targets/target.hpp"

namespace forestvm::support {

inline std::vector<std::string> targets_here() {
  std::vector<std::string> names;
  for (const std::string_view name : host_targets())
    if (host::find_target(name).ok()) names.emplace_back(name);
  return names;
}

}  // namespace forestvm::support
