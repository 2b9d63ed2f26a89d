// See output_file.hpp.
#include "cli/io/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::cli {
namespace {

constexpr std::size_t kBufferSize = std::size_t{1} << 18;

/// The most links that are followed; the kernel follows as many.
constexpr int kMaxLinks = 40;

/// Returns the file at the end of a chain of links, so that finish() replaces the file and not the link. The file need
/// not exist.
std::string resolved(const std::string& path) {
  std::filesystem::path target = path;
  std::error_code failed;
  for (int i = 0; i < kMaxLinks && std::filesystem::is_symlink(target, failed); ++i)
    target = target.parent_path() / std::filesystem::read_symlink(target, failed);
  return target;
}

}  // namespace

Result<OutputFile> OutputFile::open(const std::string& path) {
  OutputFile out;
  out.name_ = path == "-" ? "standard output" : path;
  if (path == "-") {
    out.file_ = STDOUT_FILENO;
    return out;
  }
  out.owned_ = true;
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno == ELOOP) return out.cannot_write();
  if (exists && !S_ISREG(status.st_mode)) {
    out.file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (out.file_ < 0) return out.cannot_write();
    return out;
  }
  out.target_ = resolved(path);
  if (exists && ::access(out.target_.c_str(), W_OK) != 0) return out.cannot_write();
  FVM_TRY(out.create_beside());
  // a failure is ignored: the owner may be another
  if (exists) static_cast<void>(::fchmod(out.file_, status.st_mode & 0777U));
  return out;
}

Error OutputFile::cannot_write() const {
  return fail(ErrorCode::Environment, name_, std::string("cannot write: ") + std::strerror(errno));
}

Result<void> OutputFile::create_beside() {
  const std::string stem = formatted("{}.{}", target_, ::getpid());
  for (int attempt = 0; attempt < 100; ++attempt) {
    // Registers the file before it exists, so that a signal at any time removes it.
    unfinished_ = Unfinished(formatted("{}.{}.unfinished", stem, attempt));
    file_ = ::open(unfinished_.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ >= 0) return {};
    unfinished_.finished();  // the file belongs to another process
    if (errno != EEXIST) break;
  }
  return cannot_write();
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : name_(std::move(other.name_)),
      file_(std::exchange(other.file_, -1)),
      owned_(std::exchange(other.owned_, false)),
      target_(std::move(other.target_)),
      unfinished_(std::move(other.unfinished_)),
      buffer_(std::move(other.buffer_)) {}

OutputFile::~OutputFile() {
  if (owned_ && file_ >= 0) ::close(file_);
}

Result<void> OutputFile::write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() >= kBufferSize) FVM_TRY(flush());
  if (bytes.size() >= kBufferSize) return write_through(bytes);
  buffer_ += bytes;
  return {};
}

Result<void> OutputFile::write_through(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return cannot_write();
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> OutputFile::flush() {
  FVM_TRY(write_through(buffer_));
  buffer_.clear();
  return {};
}

Result<void> OutputFile::replace_start(std::string_view bytes) {
  FVM_TRY(flush());
  if (::lseek(file_, 0, SEEK_SET) != 0) return cannot_write();
  FVM_TRY(write_through(bytes));
  return ::lseek(file_, 0, SEEK_END) < 0 ? cannot_write() : Result<void>();
}

Result<void> OutputFile::finish() {
  FVM_TRY(flush());
  if (!owned_) return {};
  // Waits until the data is on disk before renaming. Otherwise a power failure could leave an incomplete file under the
  // name.
  if (unfinished_.exists() && ::fsync(file_) != 0) return cannot_write();
  if (::close(std::exchange(file_, -1)) != 0) return cannot_write();
  if (!unfinished_.exists()) return {};
  if (::rename(unfinished_.path().c_str(), target_.c_str()) != 0) return cannot_write();
  unfinished_.finished();
  return {};
}

Result<void> write_output(const std::string& path, std::string_view bytes) {
  FVM_ASSIGN(OutputFile out, OutputFile::open(path));
  FVM_TRY(out.write(bytes));
  return out.finish();
}

}  // namespace forestvm::cli
