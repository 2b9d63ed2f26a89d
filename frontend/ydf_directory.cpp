// See ydf_directory.hpp.
#include "frontend/ydf_directory.hpp"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

#include "frontend/file_bytes.hpp"
#include "frontend/foreign_formats.hpp"

namespace forestvm::frontend {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDataSpec = "data_spec.pb";

/// The header of a file of nodes: "BS", a version of two bytes, the compression, and three bytes that are 0.
constexpr std::size_t kBlobHeader = 8;
constexpr std::size_t kVersionByte = 2, kCompressionByte = 4;

/// Returns the error that errno names.
Error unreadable() {
  return fail(ErrorCode::Environment, "cannot read the directory: " + std::generic_category().message(errno));
}

/// Returns the names in a directory. std::filesystem::directory_iterator would end the process if memory ran out.
Result<std::vector<std::string>> names_in(const std::string& path) {
  struct Close {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  const std::unique_ptr<DIR, Close> directory(::opendir(path.c_str()));
  if (directory == nullptr) return unreadable();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread reads this stream
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr && errno != 0) return unreadable();
    if (entry == nullptr) return names;
    names.emplace_back(entry->d_name);
  }
}

/// Returns the error for a directory without a model of YDF.
Error no_model(const std::string& path) {
  std::error_code ignored;
  if (fs::exists(fs::path(path) / "saved_model.pb", ignored))
    return refused(
        "directory",
        "has no file data_spec.pb: it is a TensorFlow SavedModel, and only those of TF-DF hold forests: give "
        "their folder assets");
  if (const char* const sentence = foreign_directory(path)) return refused("directory", sentence);
  return refused("directory",
                 "has no file data_spec.pb, so it is not a YDF model; other models are single files");
}

}  // namespace

Result<YdfDirectory> YdfDirectory::open(const std::string& path, const LoadLimits& limits) {
  FVM_ASSIGN(const std::vector<std::string> names, names_in(path));
  std::vector<std::string> prefixes;
  for (const std::string& name : names) {
    if (name.ends_with(kDataSpec)) prefixes.push_back(name.substr(0, name.size() - kDataSpec.size()));
    if (prefixes.size() > 1)
      return refused("directory",
                     "holds several models, such as {} and {} (prefixes of their files): copy one of them",
                     in_quotes(prefixes[0]), in_quotes(prefixes[1]));
  }
  if (prefixes.empty()) return no_model(path);
  return YdfDirectory(path, prefixes[0], limits);
}

Error YdfDirectory::in_file(const std::string& name, Error error) const {
  const std::string file = printable(prefix_ + name);
  error.where = error.where.empty() ? file : formatted("{}: {}", file, error.where);
  return error;
}

Result<std::vector<std::byte>> YdfDirectory::read(const std::string& name) {
  auto bytes = read_file_bytes((fs::path(path_) / (prefix_ + name)).string(), bytes_left_,
                               [](std::span<const std::byte>) { return Result<void>(); });
  if (!bytes) return in_file(name, bytes.error());
  bytes_left_ -= bytes->size();
  return bytes;
}

Result<YdfBlobs> YdfDirectory::read_blobs(const std::string& name) {
  FVM_ASSIGN(std::vector<std::byte> file, read(name));
  const auto wrong = [&](std::size_t at, std::string_view message) {
    return in_file(name, refused(formatted("byte {}", at), message));
  };
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(file[at]); };
  if (file.size() < kBlobHeader || byte(0) != 'B' || byte(1) != 'S')
    return wrong(0, "not a sequence of blobs");
  if (const unsigned version = byte(kVersionByte) + 256 * byte(kVersionByte + 1); version > 1)
    return wrong(kVersionByte, formatted("version {} of blob sequences: only 0 and 1 are known", version));
  const unsigned compression = byte(kCompressionByte);
  if (compression > 1) return wrong(kCompressionByte, formatted("unknown compression {}", compression));
  if (compression == 0) return YdfBlobs{std::move(file), kBlobHeader};
  auto unpacked = unpack_gzip(std::span(file).subspan(kBlobHeader), bytes_left_, limits_.max_expansion);
  if (!unpacked) return in_file(name, unpacked.error());
  bytes_left_ -= unpacked->size();
  return YdfBlobs{std::move(*unpacked), 0};
}

}  // namespace forestvm::frontend
