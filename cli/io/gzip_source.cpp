// See gzip_source.hpp.
#include "cli/io/gzip_source.hpp"

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <forestvm/internal/inflate.hpp>

namespace forestvm::cli {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";

class GzipFeed final : public Feed {
 public:
  explicit GzipFeed(Source packed) : packed_(std::move(packed)) {}

  Result<std::size_t> read(char* to, std::size_t count) override {
    for (;;) {
      FVM_ASSIGN(const std::string_view input, packed_.peek(1));
      if (input.empty() && inflater_.is_complete()) return std::size_t{0};
      FVM_ASSIGN(const Inflater::Step step, inflater_.unpack(std::as_bytes(std::span(input)),
                                                             std::as_writable_bytes(std::span(to, count))));
      packed_.skip(step.taken);
      if (step.made != 0) return step.made;
    }
  }

  std::optional<std::uint64_t> bytes_left() const override { return std::nullopt; }

 private:
  Source packed_;
  Inflater inflater_{Inflater::Form::Gzip};
};

}  // namespace

Result<Source> unpacked(Source source) {
  FVM_ASSIGN(const bool is_gzip, source.starts_with(kGzipMagic));
  if (!is_gzip) return source;
  return Source(std::make_unique<GzipFeed>(std::move(source)));
}

Result<Source> open_unpacked(const std::string& path) {
  FVM_ASSIGN(Source source, Source::open(path));
  return unpacked(std::move(source));
}

}  // namespace forestvm::cli
