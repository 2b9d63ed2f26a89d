// See coded_file.hpp.
#include "cli/io/coded_file.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include <forestvm/core/encoder.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/program.hpp>

namespace forestvm::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and used as they are");

/// Version of the format. It is raised when older builds could not read new files.
constexpr std::uint32_t kCodedFormat = 1;
constexpr std::size_t kReadAtOnce = std::size_t{16} << 20;

struct CodedHeader {
  char magic[8];
  std::uint32_t format;
  std::uint32_t columns;
  std::uint64_t encoder;    ///< encoder_id of the program that the rows are for.
  std::uint8_t unused[32];  ///< Reserved bytes, which are zero.
  std::uint64_t checksum;   ///< XXH3-64 of the bytes before it.
};
static_assert(sizeof(CodedHeader) == 64);

/// The record before a batch. In the file's last record `rows` is zero and `checksum` is the number of all
/// rows.
struct Batch {
  std::uint64_t rows;
  std::uint64_t checksum;  ///< XXH3-64 of the codes, seeded with the number of rows.
};
static_assert(sizeof(Batch) == 16);

template <class Record>
std::string_view text_of(const Record& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

std::uint64_t checksum_of(const CodedHeader& header) {
  return checksum(std::as_bytes(std::span(&header, 1)).first(offsetof(CodedHeader, checksum)));
}

std::uint64_t checksum_of(const CodedRows& rows) {
  return checksum(std::as_bytes(std::span(rows.codes, code_bytes(rows.count, rows.columns))), rows.count);
}

Error wrong(std::uint64_t at, const std::string& what) { return refused(formatted("byte {}", at), what); }

}  // namespace

std::uint8_t* CodeMemory::resize(std::size_t bytes) {
  lines_.resize(bytes / sizeof(Line) + (bytes % sizeof(Line) != 0 ? 1 : 0));
  return data();
}

Result<CodedWriter> CodedWriter::open(const std::string& path, std::size_t columns, std::uint64_t encoder) {
  FVM_ASSIGN(OutputFile file, OutputFile::open(path));
  CodedHeader header{};
  kCodedMagic.copy(header.magic, sizeof header.magic);
  header.format = kCodedFormat;
  header.columns = static_cast<std::uint32_t>(columns);
  header.encoder = encoder;
  header.checksum = checksum_of(header);
  FVM_TRY(file.write(text_of(header)));
  return CodedWriter(std::move(file));
}

Result<void> CodedWriter::write(const CodedRows& rows) {
  const std::size_t blocks = kMaxCodedBytes / kCodeRows / std::max<std::size_t>(rows.columns, 1);
  for (CodedRows rest = rows; rest.count != 0;) {
    CodedRows batch = rest;
    batch.count = std::min(rest.count, blocks * kCodeRows);
    const std::size_t bytes = code_bytes(batch.count, batch.columns);
    FVM_TRY(file_.write(text_of(Batch{batch.count, checksum_of(batch)})));
    FVM_TRY(file_.write({reinterpret_cast<const char*>(batch.codes), bytes}));
    rest.codes += bytes;
    rest.count -= batch.count;
  }
  rows_ += rows.count;
  return {};
}

Result<void> CodedWriter::finish() {
  FVM_TRY(file_.write(text_of(Batch{0, rows_})));
  return file_.finish();
}

Result<CodedReader> CodedReader::open(Source source) {
  CodedReader reader;
  reader.source_ = std::make_unique<Source>(std::move(source));
  CodedHeader header;
  FVM_TRY(reader.read(&header, sizeof header, "its header"));
  if (std::string_view(header.magic, sizeof header.magic) != kCodedMagic)
    return wrong(0, "is not a file of encoded rows");
  if (header.checksum != checksum_of(header))
    return wrong(offsetof(CodedHeader, checksum),
                 "the header's checksum does not match: the file is damaged");
  if (header.format != kCodedFormat)
    return wrong(offsetof(CodedHeader, format),
                 formatted("is of format {}, this forestvm reads format {}", header.format, kCodedFormat));
  if (header.columns > kMaxColumns)
    return wrong(offsetof(CodedHeader, columns),
                 formatted("has {} columns, at most {}", header.columns, kMaxColumns));
  reader.columns_ = header.columns;
  reader.encoder_ = header.encoder;
  return reader;
}

/// Reads `count` bytes. `what` names them in the error if the file ends before.
Result<void> CodedReader::read(void* to, std::size_t count, const char* what) {
  FVM_ASSIGN(const std::size_t got, source_->read(static_cast<char*>(to), count));
  at_ += got;
  if (got == count) return {};
  return wrong(at_, formatted("the file ends in {}: it is truncated", what));
}

/// Reads `count` codes into codes_, followed by the slack that may be read. Memory grows only as bytes
/// arrive, because a damaged count may be huge.
Result<void> CodedReader::read_codes(std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    const std::size_t some = std::min(count - done, kReadAtOnce);
    std::uint8_t* const codes = codes_.resize(done + some);
    FVM_TRY(read(codes + done, some, "the codes of a batch"));
    done += some;
  }
  std::memset(codes_.resize(count + kCodeSlack) + count, 0, kCodeSlack);
  return {};
}

Result<CodedRows> CodedReader::next() {
  if (ended_) return CodedRows{};
  const std::uint64_t begin = at_;
  Batch batch;
  FVM_TRY(read(&batch, sizeof batch, "a batch's record"));
  if (batch.rows == 0) {
    if (batch.checksum != rows_)
      return wrong(begin, formatted("says that it has {} rows, there are {}: the file is damaged",
                                    batch.checksum, rows_));
    char more = 0;
    FVM_ASSIGN(const std::size_t got, source_->read(&more, 1));
    if (got != 0) return wrong(at_, "goes on after its end");
    ended_ = true;
    return CodedRows{};
  }
  const std::size_t bytes = coded_bytes(batch.rows, columns_);
  if (batch.rows > kMaxCodedBytes || bytes > kMaxCodedBytes + kCodeSlack)
    return wrong(
        begin,
        formatted("a batch of {} rows of {} columns is larger than a batch may be: the file is damaged",
                  batch.rows, columns_));
  FVM_TRY(read_codes(bytes - kCodeSlack));
  const CodedRows rows{codes_.data(), batch.rows, columns_, bytes, encoder_};
  if (checksum_of(rows) != batch.checksum)
    return wrong(begin, "the batch's checksum does not match: the file is damaged");
  rows_ += rows.count;
  return rows;
}

}  // namespace forestvm::cli
