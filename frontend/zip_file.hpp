// Reads a zip archive in memory. In: its bytes. Out: the contents of its entries, by name, within limits. Entries are
// stored or deflated; archives over 4 GiB, encrypted ones and other compressions are refused. This reader stands here
// instead of a library because libzip brings five more libraries into every static build, and minizip reads through
// callbacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <forestvm/load.hpp>
#include <forestvm/result.hpp>

namespace forestvm::frontend {

class ZipFile {
 public:
  /// Reads the table of contents. The bytes must outlive the object. Refuses an archive whose entries together unpack
  /// to more than limits.max_bytes, or limits.max_expansion times its size.
  static Result<ZipFile> open(std::span<const std::byte> bytes, const LoadLimits& limits);

  bool has(std::string_view name) const { return entries_.contains(name); }

  /// Returns an entry's content, which must have the size and the checksum that the archive says. Refuses a call once
  /// all calls together would return more than all entries hold and a little more. So a small file that refers to one
  /// entry many times cannot take much memory.
  Result<std::vector<std::byte>> read(std::string_view name);

 private:
  struct Entry {
    std::uint16_t flags = 0, method = 0;
    std::uint32_t checksum = 0, packed = 0, size = 0, offset = 0;
  };
  struct Directory {
    std::uint64_t entries = 0, begin = 0, end = 0;
  };

  explicit ZipFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t number(std::size_t at, unsigned size) const;
  bool starts(std::size_t at, std::string_view signature) const;
  Result<Directory> find_directory() const;
  Result<Directory> find_long_directory(std::size_t end_record) const;
  Result<void> read_directory(const Directory& directory, const LoadLimits& limits);
  Result<std::span<const std::byte>> packed_bytes(std::string_view name, const Entry& entry) const;

  std::span<const std::byte> bytes_;
  std::size_t left_ = 0;  ///< Number of bytes that may still be read.
  std::unordered_map<std::string_view, Entry> entries_;
};

}  // namespace forestvm::frontend
