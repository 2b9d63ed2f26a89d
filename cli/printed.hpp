// Formats numbers with a width and a precision.
#pragma once

#include <string>

namespace forestvm::cli {

/// Returns the text that printf would print for the same arguments.
[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...);

}  // namespace forestvm::cli
