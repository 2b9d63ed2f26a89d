// See sparse_predictions.hpp.
#include "cli/io/sparse_predictions.hpp"

#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <forestvm/internal/inflate.hpp>

#include "cli/io/npy.hpp"
#include "cli/io/source.hpp"
#include "cli/io/system_error.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

/// The size of the pieces in which a vector is copied into the archive.
constexpr std::size_t kPiece = std::size_t{1} << 16;
/// The most bytes of all vectors: 1 MiB less than the 2^32 bytes that an archive may have, which is more than enough
/// for what the archive holds besides them.
constexpr std::uint64_t kMaxVectorBytes = (std::uint64_t{1} << 32) - (std::uint64_t{1} << 20);

/// Appends a number in `bytes` bytes, little-endian.
void append(std::string& to, std::uint64_t number, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) to += static_cast<char>(number >> (8 * i) & 0xff);
}

/// Returns the fields that a file's header and its record in the directory share. All files have the same time, so that
/// equal predictions give equal archives.
std::string fields(std::string_view name, std::uint32_t checksum, std::uint64_t size) {
  std::string text;
  append(text, 20, 2);  // the version that is needed to read it
  append(text, 0, 2);   // flags
  append(text, 0, 2);   // stored as it is
  append(text, 0, 2);
  append(text, 0x21, 2);  // 1980-01-01
  append(text, checksum, 4);
  append(text, size, 4);
  append(text, size, 4);
  append(text, name.size(), 2);
  append(text, 0, 2);
  return text;
}

/// Writes the header of a file of the archive, and appends its record to the directory.
Result<void> begin_entry(OutputFile& file, std::uint64_t& written, std::string& directory,
                         std::string_view name, std::uint32_t checksum, std::uint64_t size) {
  const std::string both = fields(name, checksum, size);
  std::string header = "PK\x03\x04" + both;
  header += name;
  directory += "PK\x01\x02";
  append(directory, 20, 2);
  directory += both;
  append(directory, 0, 6);  // comment, disk, attributes
  append(directory, 0, 4);
  append(directory, written, 4);
  directory += name;
  written += header.size() + size;
  return file.write(header);
}

/// Writes a small array that is known as a whole.
Result<void> write_entry(OutputFile& file, std::uint64_t& written, std::string& directory,
                         std::string_view name, const std::string& array) {
  FVM_TRY(begin_entry(file, written, directory, name, crc32_of(0, bytes_of(array)), array.size()));
  return file.write(array);
}

}  // namespace

bool is_npz_name(const std::string& path) { return path.ends_with(".npz") || path.ends_with(".NPZ"); }

Result<SpooledArray> SpooledArray::make(const char* name, const char* dtype, std::size_t size) {
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) return temporary_file_error();
  return SpooledArray(name, dtype, size, file);
}

Result<void> SpooledArray::add(const void* number) {
  ++count_;
  return std::fwrite(number, size_, 1, file_.get()) == 1 ? Result<void>() : temporary_file_error();
}

Result<void> SpooledArray::write(OutputFile& file, std::uint64_t& written, std::string& directory) {
  const std::string header = npy_header(dtype_, {count_});
  if (std::fflush(file_.get()) != 0) return temporary_file_error();
  std::uint32_t checksum = crc32_of(0, bytes_of(header));
  std::vector<char> piece(kPiece);
  // The checksum stands before the numbers, so they are read twice.
  for (const bool copies : {false, true}) {
    if (std::fseek(file_.get(), 0, SEEK_SET) != 0) return temporary_file_error();
    if (copies) {
      FVM_TRY(begin_entry(file, written, directory, name_, checksum, header.size() + bytes()));
      FVM_TRY(file.write(header));
    }
    while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), file_.get())) {
      if (copies)
        FVM_TRY(file.write({piece.data(), got}));
      else
        checksum = crc32_of(checksum, bytes_of({piece.data(), got}));
    }
    if (std::ferror(file_.get()) != 0) return temporary_file_error();
  }
  return {};
}

Result<SparseWriter> SparseWriter::open(const std::string& path, std::uint64_t columns, bool wide) {
  FVM_ASSIGN(OutputFile file, OutputFile::open(path));
  FVM_ASSIGN(SpooledArray values, SpooledArray::make("data.npy", wide ? "<f8" : "<f4", wide ? 8 : 4));
  FVM_ASSIGN(SpooledArray indices, SpooledArray::make("indices.npy", "<i8", 8));
  FVM_ASSIGN(SpooledArray ends, SpooledArray::make("indptr.npy", "<i8", 8));
  const std::int64_t first = 0;
  FVM_TRY(ends.add(&first));
  return SparseWriter(path, std::move(file), columns, wide, std::move(values), std::move(indices),
                      std::move(ends));
}

Result<void> SparseWriter::add(std::uint64_t column, double value) {
  ++count_;
  FVM_TRY(indices_.add(&column));
  if (wide_) return values_.add(&value);
  const auto single = static_cast<float>(value);
  return values_.add(&single);
}

Result<void> SparseWriter::end_row() {
  ++rows_;
  FVM_TRY(ends_.add(&count_));
  if (values_.bytes() + indices_.bytes() + ends_.bytes() <= kMaxVectorBytes) return {};
  return in_file(
      path_,
      refused(
          "its arrays would take more than 4 GiB: write fewer rows to a file, or fewer features with --features"));
}

Result<void> SparseWriter::finish() {
  std::uint64_t written = 0;
  std::string directory;
  FVM_TRY(indices_.write(file_, written, directory));
  FVM_TRY(ends_.write(file_, written, directory));
  FVM_TRY(write_entry(file_, written, directory, "format.npy", npy_header("|S3", {}) + "csr"));
  std::string shape = npy_header("<i8", {2});
  append(shape, static_cast<std::uint64_t>(rows_), 8);
  append(shape, columns_, 8);
  FVM_TRY(write_entry(file_, written, directory, "shape.npy", shape));
  FVM_TRY(values_.write(file_, written, directory));
  const std::uint64_t begin = written, size = directory.size();
  constexpr std::uint64_t kEntries = 5;
  directory += "PK\x05\x06";
  append(directory, 0, 4);  // disks
  append(directory, kEntries, 2);
  append(directory, kEntries, 2);
  append(directory, size, 4);
  append(directory, begin, 4);
  append(directory, 0, 2);
  FVM_TRY(file_.write(directory));
  return file_.finish();
}

}  // namespace forestvm::cli
