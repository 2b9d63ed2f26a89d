// Reads a whole file or pipe, up to a limit.
#include "frontend/file_bytes.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

/// The number of bytes that are read at once. The vector grows by this number, so that pages which the file does not
/// fill are never touched.
constexpr std::size_t kReadSize = std::size_t{1} << 16;

/// Asks the system to use large pages for the memory of a large file, because touching small pages takes longer than
/// reading the file.
void use_large_pages([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::size_t size) {
#ifdef MADV_HUGEPAGE
  constexpr std::size_t kLargePage = std::size_t{1} << 21;
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % kLargePage;
  if (size < 4 * kLargePage) return;
  ::madvise(begin + before, (size - before) / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
}

Error unreadable(std::string why) {
  return fail(ErrorCode::Environment, "cannot read the file: " + std::move(why));
}

Error too_long(std::size_t max_bytes) {
  return refused(formatted("the file is longer than the limit of {} bytes", max_bytes));
}

}  // namespace

Result<std::vector<std::byte>> read_file_bytes(
    const std::string& path, std::size_t max_bytes,
    const std::function<Result<void>(std::span<const std::byte>)>& check_opening) {
  if (path.find('\0') != std::string::npos) return unreadable("its name holds a zero byte");
  errno = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return unreadable(std::strerror(errno));

  std::error_code unknown;
  const std::uintmax_t expected = std::filesystem::file_size(path, unknown);
  std::vector<std::byte> bytes;
  for (std::size_t size = 0;;) {
    bytes.resize(size + kReadSize);
    const std::size_t got = std::fread(bytes.data() + size, 1, kReadSize, file.get());
    if (std::ferror(file.get()) != 0) return unreadable(std::strerror(errno));
    if (size == 0) {
      FVM_TRY(check_opening(std::span(bytes).first(got)));
      if (!unknown && expected > max_bytes) return too_long(max_bytes);
      if (!unknown) bytes.reserve(static_cast<std::size_t>(expected) + kReadSize);
      use_large_pages(bytes.data() + got, bytes.capacity() - got);
    }
    size += got;
    if (size > max_bytes) return too_long(max_bytes);
    if (got == kReadSize) continue;
    bytes.resize(size);
    return bytes;
  }
}

}  // namespace forestvm::frontend
