// The program that predicts what walks cost: the bytes of walk_costs.fvm, which the build puts into the library.
#pragma once

#include <cstddef>
#include <span>

namespace forestvm::scheduler {

/// Returns the program's image, aligned to kSectionAlignment.
std::span<const std::byte> walk_costs_image();

}  // namespace forestvm::scheduler
