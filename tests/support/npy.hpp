// A small reader of NumPy's .npy files, for tests: float32, float64, int32 or int64, little-endian, with at most two
// dimensions if they are in Fortran's order. In: a path. Out: the shape and the numbers in C's order. Throws
// std::runtime_error for any other file.
#pragma once

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace forestvm::support {

static_assert(std::endian::native == std::endian::little);

template <class Number>
struct Npy {
  std::vector<std::size_t> shape;
  std::vector<Number> data;

  std::size_t rows() const { return shape.empty() ? 0 : shape[0]; }
  std::size_t columns() const {
    std::size_t product = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
    return product;
  }
};

namespace npy_detail {

template <class Number>
constexpr const char* descr() {
  if constexpr (std::is_same_v<Number, float>) return "<f4";
  if constexpr (std::is_same_v<Number, double>) return "<f8";
  if constexpr (std::is_same_v<Number, std::int64_t>) return "<i8";
  if constexpr (std::is_same_v<Number, std::int32_t>) return "<i4";
}

inline std::vector<std::size_t> shape_of(const std::string& header) {
  const std::size_t open = header.find('(', header.find("'shape'"));
  const std::size_t close = header.find(')', open);
  if (open == std::string::npos || close == std::string::npos) throw std::runtime_error("npy: no shape");
  std::vector<std::size_t> shape;
  for (std::size_t at = open + 1; at < close;) {
    if (std::isdigit(static_cast<unsigned char>(header[at])) == 0) {
      ++at;
      continue;
    }
    std::size_t length = 0;
    shape.push_back(std::stoull(header.substr(at), &length));
    at += length;
  }
  return shape;
}

}  // namespace npy_detail

/// Returns whether the file says that it holds numbers of this type.
template <class Number>
bool holds(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string header(128, ' ');
  file.read(header.data(), 128);
  return header.find(npy_detail::descr<Number>()) != std::string::npos;
}

template <class Number>
Npy<Number> read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  if (!file || bytes.size() < 10 || bytes.compare(0, 6, "\x93NUMPY") != 0)
    throw std::runtime_error("npy: cannot read " + path);
  const bool old = bytes[6] == 1;
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, old ? 2 : 4);
  const std::size_t begin = (old ? 10u : 12u) + std::size_t{length};
  if (begin > bytes.size()) throw std::runtime_error("npy: cut short: " + path);
  const std::string header = bytes.substr(0, begin);
  if (header.find(npy_detail::descr<Number>()) == std::string::npos)
    throw std::runtime_error("npy: another type: " + path);
  Npy<Number> out;
  out.shape = npy_detail::shape_of(header);
  std::size_t count = 1;
  for (const std::size_t extent : out.shape) count *= extent;
  if (bytes.size() - begin != count * sizeof(Number)) throw std::runtime_error("npy: cut short: " + path);
  out.data.resize(count);
  if (count > 0) std::memcpy(out.data.data(), bytes.data() + begin, count * sizeof(Number));
  if (header.find("'fortran_order': False") != std::string::npos || out.shape.size() < 2) return out;
  if (out.shape.size() > 2) throw std::runtime_error("npy: Fortran's order: " + path);
  const std::vector<Number> columns = out.data;
  for (std::size_t i = 0; i < count; ++i)
    out.data[i % out.rows() * out.columns() + i / out.rows()] = columns[i];
  return out;
}

/// Reads numbers of any type that `descr` knows, as float64.
inline std::vector<double> read_numbers(const std::string& path) {
  std::vector<double> out;
  const auto take = [&]<class Number>(Number) {
    if (!holds<Number>(path)) return false;
    const Npy<Number> array = read_npy<Number>(path);
    out.assign(array.data.begin(), array.data.end());
    return true;
  };
  if (!take(0.0f) && !take(0.0) && !take(std::int32_t{}) && !take(std::int64_t{}))
    throw std::runtime_error("npy: no numbers: " + path);
  return out;
}

/// Reads texts (of ASCII), or whole numbers as their decimal texts.
inline std::vector<std::string> read_texts(const std::string& path) {
  std::vector<std::string> out;
  if (holds<std::int64_t>(path)) {
    for (const std::int64_t number : read_npy<std::int64_t>(path).data) out.push_back(std::to_string(number));
    return out;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::size_t descr = bytes.find("'<U"), end = bytes.find('\n');
  if (descr == std::string::npos || end == std::string::npos)
    throw std::runtime_error("npy: neither texts nor int64: " + path);
  const std::size_t width = 4 * std::stoul(bytes.substr(descr + 3));
  for (std::size_t at = end + 1; at + width <= bytes.size(); at += width) {
    out.emplace_back();
    for (std::size_t i = 0; i < width && bytes[at + i] != '\0'; i += 4) out.back() += bytes[at + i];
  }
  return out;
}

}  // namespace forestvm::support
