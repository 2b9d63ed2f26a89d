// Reads files and unpacks gzip. In: a path, or gzip bytes. Out: bytes within a limit.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// Reads the whole file. Returns an Environment error if it cannot be read, and refuses it if it is longer than
/// `max_bytes`. Calls `check_opening` with the first 64 KiB (or all of a shorter file) before it reads the rest, and
/// returns its error.
Result<std::vector<std::byte>> read_file_bytes(
    const std::string& path, std::size_t max_bytes,
    const std::function<Result<void>(std::span<const std::byte>)>& check_opening);

/// Returns true if the bytes start as a gzip member does (RFC 1952).
bool is_gzip(std::span<const std::byte> bytes);

/// Returns the first unpacked bytes of a gzip file, at most `size`; fewer, or none, if it is damaged there.
std::vector<std::byte> peek_gzip(std::span<const std::byte> bytes, std::size_t size);

/// Unpacks all members of a gzip file. Refuses bytes that are damaged, cut short or followed by others, and stops
/// as soon as the result passes max_bytes or max_expansion times the input: memory stays within twice that.
Result<std::vector<std::byte>> unpack_gzip(std::span<const std::byte> bytes, std::size_t max_bytes,
                                           std::size_t max_expansion);

}  // namespace forestvm::frontend
