// See source.hpp.
#include "cli/io/source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "cli/io/system_error.hpp"

namespace forestvm::cli {
namespace {

constexpr std::size_t kReadSize = std::size_t{1} << 18;

class FileFeed final : public Feed {
 public:
  FileFeed(int file, bool owned) : file_(file), owned_(owned) {}
  FileFeed(const FileFeed&) = delete;
  FileFeed& operator=(const FileFeed&) = delete;
  ~FileFeed() override {
    if (owned_) ::close(file_);
  }

  Result<void> begin() {
    struct stat status = {};
    if (::fstat(file_, &status) != 0) return system_error("cannot read");
    if (S_ISDIR(status.st_mode)) return fail(ErrorCode::Environment, "is a directory");
    if (!S_ISREG(status.st_mode)) return {};
    const off_t at = ::lseek(file_, 0, SEEK_CUR);
    if (at < 0 || at > status.st_size) return {};
    part_ = FilePart{file_, static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(status.st_size - at)};
    return {};
  }

  Result<std::size_t> read(char* to, std::size_t count) override {
    ssize_t got = -1;
    do {
      got = ::read(file_, to, count);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return system_error("cannot read");
    fetched_ += static_cast<std::uint64_t>(got);
    return static_cast<std::size_t>(got);
  }

  std::optional<std::uint64_t> bytes_left() const override {
    if (!part_) return std::nullopt;
    return part_->size > fetched_ ? part_->size - fetched_ : 0;  // a file may grow meanwhile
  }

  std::optional<FilePart> file() const override { return part_; }

 private:
  int file_;
  bool owned_;  // standard input is not closed
  std::uint64_t fetched_ = 0;
  std::optional<FilePart> part_;
};

}  // namespace

Result<Source> Source::open(const std::string& path) {
  const bool standard = path == "-";
  const int file = standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return system_error("cannot open");
  auto feed = std::make_unique<FileFeed>(file, !standard);
  FVM_TRY(feed->begin());
  return Source(std::move(feed));
}

Source Source::from_text(std::string text) {
  Source source;
  source.buffer_ = std::move(text);
  source.ended_ = true;
  return source;
}

Result<std::size_t> Source::read_some(char* to, std::size_t count) {
  FVM_ASSIGN(const std::size_t got, feed_->read(to, count));
  if (got == 0) ended_ = true;
  return got;
}

/// Reads once more into the buffer, which grows only by what arrives: pages without data are never touched.
Result<void> Source::fetch() {
  const std::size_t had = buffer_.size();
  if (buffer_.capacity() < had + kReadSize) buffer_.reserve(std::max(had + kReadSize, 2 * had));
  buffer_.resize(had + kReadSize);
  auto got = read_some(buffer_.data() + had, kReadSize);
  buffer_.resize(had + (got ? *got : 0));
  return got ? Result<void>() : got.error();
}

Result<std::string_view> Source::peek(std::size_t count) {
  if (buffered() < count && !ended_) {
    buffer_.erase(0, std::exchange(begin_, 0));
    while (buffer_.size() < count && !ended_) FVM_TRY(fetch());
  }
  return std::string_view(buffer_).substr(begin_);
}

Result<bool> Source::starts_with(std::string_view bytes) {
  for (;;) {
    const std::size_t had = buffered();
    const std::string_view seen = std::string_view(buffer_).substr(begin_, bytes.size());
    if (seen.size() == bytes.size() || bytes.substr(0, seen.size()) != seen) return seen == bytes;
    FVM_TRY(peek(had + 1));
    if (buffered() == had) return false;
  }
}

Result<std::string> Source::read_rest(std::size_t limit) {
  const auto too_long = [limit] { return refused(formatted("is longer than {} bytes", limit)); };
  const std::optional<std::uint64_t> left = bytes_left();
  if (left && *left > limit) return too_long();
  buffer_.erase(0, std::exchange(begin_, 0));
  if (left) buffer_.reserve(static_cast<std::size_t>(*left) + kReadSize);
  while (!ended_) {
    FVM_TRY(fetch());
    if (buffer_.size() > limit) return too_long();
  }
  return std::move(buffer_);
}

Result<std::size_t> Source::read(char* to, std::size_t count) {
  std::size_t done = std::min(count, buffered());
  std::memcpy(to, buffer_.data() + begin_, done);
  begin_ += done;
  while (done < count && !ended_) {
    FVM_ASSIGN(const std::size_t got, read_some(to + done, count - done));
    done += got;
  }
  return done;
}

std::optional<std::uint64_t> Source::bytes_left() const {
  if (!feed_) return buffered();
  const std::optional<std::uint64_t> rest = feed_->bytes_left();
  return rest ? std::optional(*rest + buffered()) : std::nullopt;
}

}  // namespace forestvm::cli
