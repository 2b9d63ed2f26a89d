// CityHash64, version 1.0 (2011; later versions give other numbers), and the codes that CatBoost makes of categories
// with it. All of it is inline: the runtime library, which hashes rows, does not link the readers of model files.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace forestvm {

namespace city_hash {

constexpr std::uint64_t kPrime0 = 0xc3a5c85c97cb3127, kPrime1 = 0xb492b66fbe98f273;
constexpr std::uint64_t kPrime2 = 0x9ae16a3b2f90404f, kPrime3 = 0xc949d7c7509e6557;

template <class Word>
inline Word word_at(std::string_view text, std::size_t at) {
  static_assert(std::endian::native == std::endian::little);
  Word word = 0;
  std::memcpy(&word, text.data() + at, sizeof(word));
  return word;
}

inline std::uint64_t word64(std::string_view text, std::size_t at) {
  return word_at<std::uint64_t>(text, at);
}

inline std::uint64_t mix_high_bits(std::uint64_t word) { return word ^ (word >> 47); }

/// Hashes two words into one.
inline std::uint64_t join(std::uint64_t low, std::uint64_t high) {
  constexpr std::uint64_t factor = 0x9ddfea08eb382d69;
  const std::uint64_t first = mix_high_bits((low ^ high) * factor);
  return mix_high_bits((high ^ first) * factor) * factor;
}

inline std::uint64_t hash_to_16(std::string_view text) {
  const std::size_t size = text.size();
  const auto byte = [&](std::size_t at) { return std::uint32_t{static_cast<unsigned char>(text[at])}; };
  if (size > 8) {
    const std::uint64_t first = word64(text, 0), last = word64(text, size - 8);
    return join(first, std::rotr(last + size, static_cast<int>(size))) ^ last;
  }
  if (size >= 4)
    return join(size + (std::uint64_t{word_at<std::uint32_t>(text, 0)} << 3),
                word_at<std::uint32_t>(text, size - 4));
  if (size == 0) return kPrime2;
  const std::uint32_t begin = byte(0) + (byte(size / 2) << 8);
  const std::uint32_t end = static_cast<std::uint32_t>(size) + (byte(size - 1) << 2);
  return mix_high_bits(begin * kPrime2 ^ end * kPrime3) * kPrime2;
}

inline std::uint64_t hash_17_to_32(std::string_view text) {
  const std::size_t size = text.size();
  const std::uint64_t a = word64(text, 0) * kPrime1, b = word64(text, 8);
  const std::uint64_t c = word64(text, size - 8) * kPrime2, d = word64(text, size - 16) * kPrime0;
  return join(std::rotr(a - b, 43) + std::rotr(c, 30) + d, a + std::rotr(b ^ kPrime3, 20) - c + size);
}

/// Two words of state, or the hash of 32 bytes.
struct Pair {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

/// Hashes the 32 bytes at `at` for a text of 33 to 64 bytes.
inline Pair hash_32_of_64(std::string_view text, std::size_t at, std::uint64_t a, std::uint64_t last) {
  std::uint64_t b = std::rotr(a + last, 52), c = std::rotr(a, 37);
  a += word64(text, at + 8);
  c += std::rotr(a, 7);
  a += word64(text, at + 16);
  return {a + last, b + std::rotr(a, 31) + c};
}

inline std::uint64_t hash_33_to_64(std::string_view text) {
  const std::size_t size = text.size();
  const std::uint64_t begin = word64(text, 0) + (size + word64(text, size - 16)) * kPrime0;
  const Pair v = hash_32_of_64(text, 0, begin, word64(text, 24));
  const Pair w =
      hash_32_of_64(text, size - 32, word64(text, 16) + word64(text, size - 32), word64(text, size - 8));
  const std::uint64_t mixed = mix_high_bits((v.first + w.second) * kPrime2 + (w.first + v.second) * kPrime0);
  return mix_high_bits(mixed * kPrime0 + v.second) * kPrime2;
}

/// Hashes the 32 bytes at `at`, and two seeds.
inline Pair hash_32(std::string_view text, std::size_t at, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t last = word64(text, at + 24);
  a += word64(text, at);
  b = std::rotr(b + a + last, 21);
  const std::uint64_t begin = a;
  a += word64(text, at + 8);
  a += word64(text, at + 16);
  b += std::rotr(a, 44);
  return {a + last, b + begin};
}

inline std::uint64_t hash_from_65(std::string_view text) {
  const std::size_t size = text.size();
  std::uint64_t x = word64(text, 0);
  std::uint64_t y = word64(text, size - 16) ^ kPrime1;
  std::uint64_t z = word64(text, size - 56) ^ kPrime0;
  Pair v = hash_32(text, size - 64, size, y);
  Pair w = hash_32(text, size - 32, size * kPrime1, kPrime0);
  z += mix_high_bits(v.second) * kPrime1;
  x = std::rotr(z + x, 39) * kPrime1;
  y = std::rotr(y, 33) * kPrime1;
  for (std::size_t at = 0; at < (size - 1) / 64 * 64; at += 64) {
    x = std::rotr(x + y + v.first + word64(text, at + 16), 37) * kPrime1;
    y = std::rotr(y + v.second + word64(text, at + 48), 42) * kPrime1;
    x ^= w.second;
    y ^= v.first;
    z = std::rotr(z ^ w.first, 33);
    v = hash_32(text, at, v.second * kPrime1, x + w.first);
    w = hash_32(text, at + 32, z + w.second, y);
    std::swap(z, x);
  }
  return join(join(v.first, w.first) + mix_high_bits(y) * kPrime1 + z, join(v.second, w.second) + x);
}

}  // namespace city_hash

/// Returns the CityHash64, version 1.0, of the text's bytes.
inline std::uint64_t city_hash64(std::string_view text) {
  if (text.size() <= 16) return city_hash::hash_to_16(text);
  if (text.size() <= 32) return city_hash::hash_17_to_32(text);
  if (text.size() <= 64) return city_hash::hash_33_to_64(text);
  return city_hash::hash_from_65(text);
}

/// Returns the code of a category of a hashed feature (see Model::hashed_features).
inline std::int32_t category_code(std::string_view text) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(city_hash64(text)));
}

/// The largest magnitude of a whole number that stands for its decimal text: larger ones may have been rounded.
inline constexpr double kMaxCategoryNumber = 9007199254740992;  // 2^53

}  // namespace forestvm
