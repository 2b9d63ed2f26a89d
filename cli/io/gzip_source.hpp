// Input that is unpacked while it is read, if it is gzip.
#pragma once

#include <string>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"

namespace forestvm::cli {

/// Opens `path`; "-" is standard input. If the content is gzip, the source gives what it unpacks to, and errors of
/// reading name the damaged byte. What it unpacks to has no limit, because memory holds a piece of it only.
Result<Source> open_unpacked(const std::string& path);
Result<Source> unpacked(Source source);

}  // namespace forestvm::cli
