// Reads the files of a ZIP archive (APPNOTE.TXT, with ZIP64). Its directory says where they are. Each is read forward;
// several can be read side by side.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"

namespace forestvm::cli {

class ZipArchive {
 public:
  /// A file of the archive, as the directory describes it.
  struct Entry {
    std::string name;
    std::uint64_t at;      ///< Offset of its local header.
    std::uint64_t packed;  ///< Bytes in the archive.
    std::uint64_t size;    ///< Bytes when unpacked.
    std::uint32_t checksum;
    std::uint16_t method;
    std::uint16_t flags;
  };

  /// Reads the directory. An input that is not a regular file is first copied to a temporary file. Refuses a damaged
  /// directory, and one of more than 64 MiB. `source` must outlive the archive and what it opens.
  static Result<ZipArchive> open(Source& source);

  const std::vector<Entry>& entries() const { return entries_; }

  /// Opens a file of the archive, stored or deflated. Refuses other methods and encryption; reading from the source
  /// refuses damaged bytes, and a size or checksum that is not the directory's. The archive must outlive the source.
  Result<Source> open_entry(const Entry& entry) const;

 private:
  ZipArchive() = default;
  Result<void> copy(Source& source);
  Result<std::string> bytes_at(std::uint64_t at, std::size_t count) const;
  Result<void> read_directory();

  FilePart part_{};
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> copy_{nullptr, &std::fclose};
  std::vector<Entry> entries_;
};

}  // namespace forestvm::cli
