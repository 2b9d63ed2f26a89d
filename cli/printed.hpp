// Numbers as texts of a chosen width and precision.
#pragma once

#include <string>

namespace forestvm::cli {

/// Returns what printf prints.
[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...);

}  // namespace forestvm::cli
