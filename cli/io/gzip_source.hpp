// Unpacks gzip input while it is read.
#pragma once

#include <string>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"

namespace forestvm::cli {

/// Opens `path`; "-" is standard input. If the content is gzip, the source gives the unpacked bytes, and errors name
/// the damaged byte. Their number has no limit, because memory holds only a piece of them.
Result<Source> open_unpacked(const std::string& path);
/// Unpacks what `source` gives if it is gzip; otherwise returns `source`.
Result<Source> unpacked(Source source);

}  // namespace forestvm::cli
