// See zip_file.hpp. Names and numbers are those of PKWARE's APPNOTE.TXT 6.3. Every offset is checked against the bytes
// that are there before it is used.
#include "frontend/zip_file.hpp"

#include <algorithm>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/inflate.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

constexpr std::string_view kLocalHeader = "PK\x03\x04", kDirectoryHeader = "PK\x01\x02",
                           kEndRecord = "PK\x05\x06", kLongEndRecord = "PK\x06\x06",
                           kLongEndLocator = "PK\x06\x07";
constexpr std::size_t kLocalSize = 30, kDirectorySize = 46, kEndSize = 22, kLongEndSize = 56,
                      kLocatorSize = 20;
constexpr std::size_t kMaxComment = 65'535;
constexpr std::uint16_t kEncrypted = 1;
/// The number of bytes that may be read more than once, because objects of a file share small arrays.
constexpr std::size_t kSpareReads = std::size_t{1} << 24;
constexpr std::uint16_t kStored = 0, kDeflated = 8;

Error damaged(std::size_t at, std::string_view message) {
  return refused(formatted("byte {} of the zip archive", at), message);
}

Error bad_entry(std::string_view name, std::string_view message) {
  return refused(formatted("entry {} of the zip archive", in_quotes(name)), message);
}

std::size_t unpacked_limit(std::size_t size, const LoadLimits& limits) {
  std::size_t product = 0;
  if (__builtin_mul_overflow(size, limits.max_expansion, &product)) return limits.max_bytes;
  return std::min(limits.max_bytes, product);
}

Result<std::vector<std::byte>> inflated(std::string_view name, std::span<const std::byte> packed,
                                        std::size_t size) {
  Inflater inflater(Inflater::Form::Raw);
  std::vector<std::byte> out;
  std::size_t filled = 0;
  while (!packed.empty() || !inflater.is_complete()) {
    // Makes room for one byte more than declared, which only a longer stream fills.
    if (filled == out.size()) out.resize(std::min(size + 1, filled + kUnpackSize));
    const auto step = inflater.unpack(packed, std::span(out).subspan(filled));
    if (!step && step.error().code == ErrorCode::Environment) return step.error();
    if (!step) return bad_entry(name, step.error().message);
    packed = packed.subspan(step->taken);
    filled += step->made;
    if (filled > size) break;
  }
  if (filled != size)
    return bad_entry(name, formatted("its size is not the {} bytes that it declares", size));
  out.resize(size);
  return out;
}

}  // namespace

std::uint64_t ZipFile::number(std::size_t at, unsigned size) const {
  std::uint64_t value = 0;
  for (unsigned i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes_[at + i]);
  return value;
}

bool ZipFile::starts(std::size_t at, std::string_view signature) const {
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  return at <= text.size() && text.substr(at).starts_with(signature);
}

/// Reads the long end record, which archives with 65,535 entries or more have before the usual one.
Result<ZipFile::Directory> ZipFile::find_long_directory(std::size_t end_record) const {
  const std::size_t locator = end_record < kLocatorSize ? 0 : end_record - kLocatorSize;
  if (!starts(locator, kLongEndLocator))
    return damaged(end_record, "a number that is too large for an archive under 4 GiB");
  const std::uint64_t at = number(locator + 8, 8);
  if (at > locator || locator - at < kLongEndSize || !starts(at, kLongEndRecord))
    return damaged(locator, "the long end record is not where it is said to be");
  const std::uint64_t size = number(at + 40, 8), begin = number(at + 48, 8);
  if (begin > at || size > at - begin) return damaged(at, "the table of contents is not inside the archive");
  return Directory{number(at + 32, 8), begin, begin + size};
}

Result<ZipFile::Directory> ZipFile::find_directory() const {
  const std::size_t least = bytes_.size() - std::min(bytes_.size(), kEndSize + kMaxComment);
  for (std::size_t at = bytes_.size() - std::min(bytes_.size(), kEndSize) + 1; at-- > least;) {
    if (!starts(at, kEndRecord) || bytes_.size() - at < kEndSize ||
        at + kEndSize + number(at + 20, 2) != bytes_.size())
      continue;
    const std::uint64_t entries = number(at + 10, 2), size = number(at + 12, 4), begin = number(at + 16, 4);
    if (entries == 0xffff || size == 0xffff'ffff || begin == 0xffff'ffff) return find_long_directory(at);
    if (begin > at || size > at - begin)
      return damaged(at, "the table of contents is not inside the archive");
    return Directory{entries, begin, begin + size};
  }
  return damaged(bytes_.size(), "the zip archive is cut short: it has no end record");
}

Result<void> ZipFile::read_directory(const Directory& directory, const LoadLimits& limits) {
  std::uint64_t total = 0;
  std::size_t at = directory.begin;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (directory.end - at < kDirectorySize || !starts(at, kDirectoryHeader))
      return damaged(at, formatted("the table of contents ends before its entry {}", i));
    Entry entry;
    entry.flags = static_cast<std::uint16_t>(number(at + 8, 2));
    entry.method = static_cast<std::uint16_t>(number(at + 10, 2));
    entry.checksum = static_cast<std::uint32_t>(number(at + 16, 4));
    entry.packed = static_cast<std::uint32_t>(number(at + 20, 4));
    entry.size = static_cast<std::uint32_t>(number(at + 24, 4));
    entry.offset = static_cast<std::uint32_t>(number(at + 42, 4));
    const std::size_t name_size = number(at + 28, 2);
    const std::size_t rest = name_size + number(at + 30, 2) + number(at + 32, 2);
    if (directory.end - at - kDirectorySize < rest)
      return damaged(at, "an entry goes beyond the table of contents");
    const std::string_view name(reinterpret_cast<const char*>(bytes_.data()) + at + kDirectorySize,
                                name_size);
    if (!entries_.emplace(name, entry).second) return bad_entry(name, "is there twice");
    total += entry.size;
    at += kDirectorySize + rest;
  }
  if (const std::size_t limit = unpacked_limit(bytes_.size(), limits); total > limit)
    return damaged(directory.begin,
                   formatted("unpacks to {} bytes: the limit for a file of this size is {}", total, limit));
  left_ = total + kSpareReads;
  return {};
}

Result<ZipFile> ZipFile::open(std::span<const std::byte> bytes, const LoadLimits& limits) {
  ZipFile zip(bytes);
  FVM_ASSIGN(const Directory directory, zip.find_directory());
  FVM_TRY(zip.read_directory(directory, limits));
  return zip;
}

Result<std::span<const std::byte>> ZipFile::packed_bytes(std::string_view name, const Entry& entry) const {
  const std::size_t at = entry.offset;
  if (bytes_.size() < kLocalSize || at > bytes_.size() - kLocalSize || !starts(at, kLocalHeader))
    return bad_entry(name, "is not where the table of contents says");
  const std::size_t header = kLocalSize + number(at + 26, 2) + number(at + 28, 2);
  if (!starts(at + kLocalSize, name) || number(at + 26, 2) != name.size())
    return bad_entry(name, "has another name at its offset than in the table of contents");
  if (bytes_.size() - at < header || bytes_.size() - at - header < entry.packed)
    return bad_entry(name, "goes beyond the end of the archive");
  return bytes_.subspan(at + header, entry.packed);
}

Result<std::vector<std::byte>> ZipFile::read(std::string_view name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return bad_entry(name, "is missing");
  const Entry& entry = found->second;
  if ((entry.flags & kEncrypted) != 0) return bad_entry(name, "is encrypted");
  if (entry.method != kStored && entry.method != kDeflated)
    return bad_entry(
        name, formatted("has the compression method {}: save it stored or deflated (zipfile.ZIP_DEFLATED)",
                        entry.method));
  if (entry.size > left_) return bad_entry(name, "is read too often: too many objects share it");
  left_ -= entry.size;
  FVM_ASSIGN(const std::span<const std::byte> packed, packed_bytes(name, entry));
  if (entry.method == kStored && entry.packed != entry.size)
    return bad_entry(name, "is stored with two different sizes");
  std::vector<std::byte> content;
  if (entry.method == kStored)
    content.assign(packed.begin(), packed.end());
  else {
    FVM_ASSIGN(content, inflated(name, packed, entry.size));
  }
  if (crc32_of(0, content) != entry.checksum)
    return bad_entry(name, "its checksum is wrong: the file is damaged");
  return content;
}

}  // namespace forestvm::frontend
