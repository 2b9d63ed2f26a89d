// See zip_archive.hpp.
#include "cli/io/zip_archive.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/inflate.hpp>

#include "cli/io/quote.hpp"
#include "cli/io/system_error.hpp"

namespace forestvm::cli {
namespace {

constexpr std::uint64_t kMaxDirectory = std::uint64_t{64} << 20;
constexpr std::size_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56, kLocalSize = 30, kEntrySize = 46;
constexpr std::size_t kMaxComment = 0xffff;
constexpr std::uint32_t kAll32 = 0xffffffff;
constexpr std::uint16_t kAll16 = 0xffff, kEncrypted = 1, kStored = 0, kDeflated = 8, kZip64Field = 1;

Error damaged(const std::string& what) { return refused("ZIP archive", what); }

/// Returns the little-endian number of sizeof(Number) bytes at `at`, which must be in `bytes`.
template <class Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

Result<std::size_t> read_at(int file, std::uint64_t at, char* to, std::size_t count) {
  ssize_t got = -1;
  do {
    got = ::pread(file, to, count, static_cast<off_t>(at));
  } while (got < 0 && errno == EINTR);
  if (got < 0) return system_error("cannot read");
  return static_cast<std::size_t>(got);
}

/// Reads a part of a file with positioned reads, so that several parts can be read side by side.
class PartFeed final : public Feed {
 public:
  explicit PartFeed(const FilePart& part) : part_(part) {}
  Result<std::size_t> read(char* to, std::size_t count) override {
    FVM_ASSIGN(const std::size_t got,
               read_at(part_.file, part_.begin, to,
                       static_cast<std::size_t>(std::min<std::uint64_t>(count, part_.size))));
    part_.begin += got;
    part_.size -= got;
    return got;
  }
  std::optional<std::uint64_t> bytes_left() const override { return part_.size; }

 private:
  FilePart part_;
};

/// Unpacks a file of the archive and checks its size and checksum.
class EntryFeed final : public Feed {
 public:
  EntryFeed(const FilePart& packed, const ZipArchive::Entry& entry)
      : packed_(std::make_unique<PartFeed>(packed)), entry_(entry), left_(entry.size) {
    if (entry.method == kDeflated) inflater_.emplace(Inflater::Form::Raw);
  }

  Result<std::size_t> read(char* to, std::size_t count) override {
    FVM_ASSIGN(const std::size_t made, inflater_ ? unpack(to, count) : packed_.read(to, count));
    checksum_ = crc32_of(checksum_, std::as_bytes(std::span(to, made)));
    if (made > left_ || (made == 0 && left_ != 0)) return wrong("is not as long as the directory says");
    left_ -= made;
    if (made == 0 && checksum_ != entry_.checksum)
      return wrong("is damaged: its checksum is not the directory's");
    return made;
  }

  std::optional<std::uint64_t> bytes_left() const override { return left_; }

 private:
  Error wrong(const char* what) const {
    return damaged(formatted("{} {}", single_quoted(entry_.name), what));
  }

  Result<std::size_t> unpack(char* to, std::size_t count) {
    for (;;) {
      FVM_ASSIGN(const std::string_view input, packed_.peek(1));
      if (input.empty() && inflater_->is_complete()) return std::size_t{0};
      const auto step =
          inflater_->unpack(std::as_bytes(std::span(input)), std::as_writable_bytes(std::span(to, count)));
      if (!step) return damaged(formatted("{}, {}", single_quoted(entry_.name), step.error().text()));
      packed_.skip(step->taken);
      if (step->made != 0) return step->made;
    }
  }

  Source packed_;
  ZipArchive::Entry entry_;
  std::uint64_t left_;
  std::uint32_t checksum_ = 0;
  std::optional<Inflater> inflater_;
};

/// The offset and size of the directory.
struct Directory {
  std::uint64_t at, size, count;
};

/// Replaces each number of the entry whose bits are all ones by the next number of the ZIP64 field. The field has only
/// these numbers, in the order of size, packed size and offset.
Result<void> widen(std::string_view fields, ZipArchive::Entry& entry) {
  while (fields.size() >= 4) {
    const auto id = number_at<std::uint16_t>(fields, 0);
    const std::size_t size = number_at<std::uint16_t>(fields, 2);
    fields.remove_prefix(4);
    if (size > fields.size()) break;
    std::string_view field = fields.substr(0, size);
    fields.remove_prefix(size);
    if (id != kZip64Field) continue;
    for (std::uint64_t* const number : {&entry.size, &entry.packed, &entry.at}) {
      if (*number != kAll32) continue;
      if (field.size() < 8) return damaged(single_quoted(entry.name) + " has a short ZIP64 field");
      *number = number_at<std::uint64_t>(field, 0);
      field.remove_prefix(8);
    }
  }
  return {};
}

}  // namespace

Result<ZipArchive> ZipArchive::open(Source& source) {
  ZipArchive archive;
  const std::optional<FilePart> file = source.file();
  if (file)
    archive.part_ = *file;
  else
    FVM_TRY(archive.copy(source));
  FVM_TRY(archive.read_directory());
  return archive;
}

/// Copies what comes through a pipe to a temporary file, because the directory is at the archive's end.
Result<void> ZipArchive::copy(Source& source) {
  copy_.reset(std::tmpfile());
  if (!copy_) return temporary_file_error();
  for (;;) {
    FVM_ASSIGN(const std::string_view piece, source.peek(1));
    if (piece.empty()) break;
    if (std::fwrite(piece.data(), 1, piece.size(), copy_.get()) != piece.size())
      return temporary_file_error();
    part_.size += piece.size();
    source.skip(piece.size());
  }
  if (std::fflush(copy_.get()) != 0) return temporary_file_error();
  part_.file = ::fileno(copy_.get());
  return {};
}

/// Returns `count` bytes at an offset in the archive.
Result<std::string> ZipArchive::bytes_at(std::uint64_t at, std::size_t count) const {
  const auto ends_early = [] { return damaged("ends too early"); };
  if (at > part_.size || count > part_.size - at) return ends_early();
  std::string bytes(count, '\0');
  for (std::size_t done = 0; done < count;) {
    FVM_ASSIGN(const std::size_t got,
               read_at(part_.file, part_.begin + at + done, bytes.data() + done, count - done));
    if (got == 0) return ends_early();
    done += got;
  }
  return bytes;
}

Result<void> ZipArchive::read_directory() {
  const std::size_t tail_size =
      static_cast<std::size_t>(std::min<std::uint64_t>(part_.size, kEndSize + kMaxComment));
  FVM_ASSIGN(const std::string tail, bytes_at(part_.size - tail_size, tail_size));
  const std::size_t end = tail.rfind("PK\x05\x06");
  if (end == std::string::npos || tail.size() - end < kEndSize)
    return damaged("has no directory: it is cut short");
  Directory directory{number_at<std::uint32_t>(tail, end + 16), number_at<std::uint32_t>(tail, end + 12),
                      number_at<std::uint16_t>(tail, end + 10)};
  const std::uint64_t end_at = part_.size - tail_size + end;
  if ((directory.at == kAll32 || directory.size == kAll32 || directory.count == kAll16) &&
      end_at >= kLocatorSize) {
    FVM_ASSIGN(const std::string locator, bytes_at(end_at - kLocatorSize, kLocatorSize));
    if (!locator.starts_with("PK\x06\x07")) return damaged("has no ZIP64 directory");
    FVM_ASSIGN(const std::string end64, bytes_at(number_at<std::uint64_t>(locator, 8), kEnd64Size));
    if (!end64.starts_with("PK\x06\x06")) return damaged("has no ZIP64 directory");
    directory = {number_at<std::uint64_t>(end64, 48), number_at<std::uint64_t>(end64, 40),
                 number_at<std::uint64_t>(end64, 32)};
  }
  if (directory.size > kMaxDirectory) return damaged("has a directory of more than 64 MiB");
  FVM_ASSIGN(const std::string rows, bytes_at(directory.at, static_cast<std::size_t>(directory.size)));
  std::string_view rest = rows;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    if (rest.size() < kEntrySize || !rest.starts_with("PK\x01\x02"))
      return damaged("has a damaged directory");
    const std::size_t name = number_at<std::uint16_t>(rest, 28), extra = number_at<std::uint16_t>(rest, 30);
    const std::size_t all = kEntrySize + name + extra + number_at<std::uint16_t>(rest, 32);
    if (rest.size() < all) return damaged("has a damaged directory");
    Entry entry{std::string(rest.substr(kEntrySize, name)), number_at<std::uint32_t>(rest, 42),
                number_at<std::uint32_t>(rest, 20),         number_at<std::uint32_t>(rest, 24),
                number_at<std::uint32_t>(rest, 16),         number_at<std::uint16_t>(rest, 10),
                number_at<std::uint16_t>(rest, 8)};
    FVM_TRY(widen(rest.substr(kEntrySize + name, extra), entry));
    entries_.push_back(std::move(entry));
    rest.remove_prefix(all);
  }
  return {};
}

Result<Source> ZipArchive::open_entry(const Entry& entry) const {
  if ((entry.flags & kEncrypted) != 0) return damaged(single_quoted(entry.name) + " is encrypted");
  if (entry.method != kStored && entry.method != kDeflated)
    return damaged(formatted("{} is packed with method {}; expected 0 (stored) or 8 (deflated)",
                             single_quoted(entry.name), entry.method));
  FVM_ASSIGN(const std::string local, bytes_at(entry.at, kLocalSize));
  if (!local.starts_with("PK\x03\x04"))
    return damaged(single_quoted(entry.name) + " is not where the directory says");
  const std::uint64_t begin =
      entry.at + kLocalSize + number_at<std::uint16_t>(local, 26) + number_at<std::uint16_t>(local, 28);
  if (begin > part_.size || entry.packed > part_.size - begin)
    return damaged(single_quoted(entry.name) + " goes beyond the end of the file");
  return Source(std::make_unique<EntryFeed>(FilePart{part_.file, part_.begin + begin, entry.packed}, entry));
}

}  // namespace forestvm::cli
