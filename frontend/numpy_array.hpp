// Reads the items of a NumPy array. In: the bytes of an .npy file, or an array that lies in memory already. Out:
// numbers and texts, item by item. Nothing is executed: arrays of Python objects are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// One field of an array's items. Unless the array is structured, its one field is the whole item and has no name.
struct NumpyField {
  std::string name;
  char kind = 'V';  ///< NumPy's kind: 'f', 'i', 'u', 'b', 'U', or 'V' for anything else.
  std::uint32_t size = 0;
  std::uint32_t offset = 0;
};

/// One field of all items of an array. The array must outlive it.
class NumpyColumn {
 public:
  NumpyColumn() = default;
  NumpyColumn(const std::byte* first, std::size_t stride, std::size_t count, char kind, std::uint32_t size)
      : first_(first), stride_(stride), count_(count), kind_(kind), size_(size) {}

  std::size_t size() const { return count_; }
  bool is_text() const { return kind_ == 'U'; }
  bool is_real() const { return kind_ == 'f'; }
  /// Returns an item of a column of numbers. A float is exact; so is an integer of up to 53 bits.
  double real(std::size_t i) const;
  /// Returns an item of a column of integers or booleans; unsigned numbers over 2^63 - 1 become 2^63 - 1.
  std::int64_t integer(std::size_t i) const;
  /// Returns an item as UTF-8 text: as Python prints it, if it is a number.
  std::string text(std::size_t i) const;

 private:
  template <class Number>
  Number load(std::size_t i) const;

  const std::byte* first_ = nullptr;
  std::size_t stride_ = 0, count_ = 0;
  char kind_ = 'V';
  std::uint32_t size_ = 0;
};

/// An array. It can be moved but not copied, because `items` may point into `file`.
struct NumpyArray {
  NumpyArray() = default;
  NumpyArray(NumpyArray&&) = default;
  NumpyArray& operator=(NumpyArray&&) = default;

  std::vector<NumpyField> fields;
  std::uint32_t item_size = 0;
  std::vector<std::uint64_t> shape;
  std::size_t count = 0;  ///< Number of items.
  std::vector<std::byte>
      file;  ///< Bytes of the .npy file in which the items lie; empty if they lie elsewhere.
  std::span<const std::byte> items;

  enum class Wanted { Integers, Numbers, Any };
  /// Returns the column of a field; the name "" is that of the whole item. Refuses fields of other kinds than `wanted`.
  /// Its errors have no place.
  Result<NumpyColumn> column(std::string_view field, Wanted wanted) const;
  bool has(std::string_view field) const;
};

/// Reads an .npy file, format 1 to 3. Its errors have no place.
Result<NumpyArray> read_npy(std::vector<std::byte> file);

/// Returns a number as Python's repr does, the shortest text that reads back as the same number.
std::string python_text(double x);

}  // namespace forestvm::frontend
