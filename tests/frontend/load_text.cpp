// Model files made in a test: loaded from memory, packed, damaged.
#include "load_text.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <stdexcept>
#include <utility>

namespace forestvm::test {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

Result<Model> load_text(const std::string& text, const LoadLimits& limits) {
  return load_model(bytes_of(text), limits);
}

Model loaded(const std::string& text) {
  Result<Model> model = load_text(text);
  EXPECT_TRUE(model.ok()) << model.error().text();
  return model.ok() ? std::move(model).value() : Model{};
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflate");
  std::string in = text;
  std::string out(deflateBound(&stream, in.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) throw std::runtime_error("deflate");
  return out;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("the text to damage is not there: " + from);
  return text.replace(at, from.size(), to);
}

}  // namespace forestvm::test
