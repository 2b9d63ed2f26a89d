// Reads a file whole, within a limit; a pipe works too.
#include "file_bytes.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace forestvm::frontend {
namespace {

Error unreadable(std::string why) {
  return {ErrorCode::Environment, "", "cannot read the file: " + std::move(why)};
}

}  // namespace

Result<std::vector<std::byte>> read_file_bytes(const std::string& path, std::size_t max_bytes) {
  if (path.find('\0') != std::string::npos) return unreadable("its name holds a zero byte");
  std::error_code status_error;
  const std::filesystem::file_type type = std::filesystem::status(path, status_error).type();
  if (type == std::filesystem::file_type::directory) return unreadable("it is a directory");
  if (type == std::filesystem::file_type::character || type == std::filesystem::file_type::block)
    return unreadable("it is a device");
  errno = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return unreadable(std::strerror(errno));

  constexpr std::size_t first_read = std::size_t{1} << 16;
  const std::uintmax_t expected = std::filesystem::file_size(path, status_error);
  std::size_t room = first_read;
  if (!status_error && expected > room)
    room = static_cast<std::size_t>(std::min<std::uintmax_t>(expected, max_bytes)) + 1;
  std::vector<std::byte> bytes;
  std::size_t size = 0;
  while (true) {
    if (size == bytes.size()) bytes.resize(size == 0 ? room : size * 2);
    const std::size_t got = std::fread(bytes.data() + size, 1, bytes.size() - size, file.get());
    size += got;
    if (size > max_bytes)
      return refused("", "the file is longer than the limit of " + std::to_string(max_bytes) + " bytes");
    if (got > 0) continue;
    if (std::ferror(file.get()) != 0) return unreadable(std::strerror(errno));
    break;
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace forestvm::frontend
