// Reads the fields of a FlatBuffers message, each within bounds, aligned or not. In: bytes. Out: numbers, texts, lists
// and tables, by the numbers of their fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <forestvm/result.hpp>

namespace forestvm::frontend {

class FlatTable;

/// A message. The first damage ends the reading: from then on all numbers are 0 and all lists empty, and `state`
/// returns the error. Tables and lists that share bytes count as damage, because copies of them could take any amount
/// of memory.
class FlatBuffer {
 public:
  /// `base` is the offset of the bytes in the file, for messages.
  FlatBuffer(std::span<const std::byte> bytes, std::size_t base)
      : bytes_(bytes), base_(base), unread_(bytes.size()) {}

  FlatTable root();
  Result<void> state() const { return error_ ? Result<void>(*error_) : Result<void>(); }

 private:
  friend class FlatTable;
  friend class FlatTables;

  /// The elements of a list.
  struct List {
    std::size_t at = 0;
    std::size_t count = 0;
  };

  template <class Number>
  Number number(std::size_t at) {
    Number out{};
    if (within(at, sizeof(Number))) std::memcpy(&out, bytes_.data() + at, sizeof(Number));
    return out;
  }
  std::size_t follow(std::size_t at) { return at + number<std::uint32_t>(at); }
  List list(std::size_t at, std::size_t element_size);
  FlatTable table(std::size_t at);
  bool within(std::size_t at, std::size_t size);
  bool spend(std::size_t at, std::size_t size);
  void fail(std::size_t at, const char* message);

  std::span<const std::byte> bytes_;
  std::size_t base_;
  std::size_t unread_;
  std::optional<Error> error_;
};

/// A list of tables. Each is read once.
class FlatTables {
 public:
  FlatTables() = default;
  std::size_t size() const { return list_.count; }
  FlatTable operator[](std::size_t i) const;

 private:
  friend class FlatTable;
  FlatTables(FlatBuffer* buffer, FlatBuffer::List list) : buffer_(buffer), list_(list) {}

  FlatBuffer* buffer_ = nullptr;
  FlatBuffer::List list_;
};

/// A table. A field that is absent has its default; an absent table has no fields.
class FlatTable {
 public:
  FlatTable() = default;
  explicit operator bool() const { return buffer_ != nullptr; }

  template <class Number>
  Number number(unsigned field, Number absent = 0) const {
    const std::size_t at = position_of(field);
    return at == 0 ? absent : buffer_->number<Number>(at);
  }
  template <class Number>
  std::vector<Number> numbers(unsigned field) const {
    static_assert(std::is_trivially_copyable_v<Number>);
    const FlatBuffer::List list = list_of(field, sizeof(Number));
    std::vector<Number> out(list.count);
    if (!out.empty()) std::memcpy(out.data(), buffer_->bytes_.data() + list.at, list.count * sizeof(Number));
    return out;
  }
  std::span<const std::byte> bytes(unsigned field) const;
  std::string_view text(unsigned field) const;
  std::vector<std::string_view> texts(unsigned field) const;
  FlatTable table(unsigned field) const;
  FlatTables tables(unsigned field) const;

 private:
  friend class FlatBuffer;
  FlatTable(FlatBuffer* buffer, std::size_t at) : buffer_(buffer), at_(at) {}
  std::size_t position_of(unsigned field) const;
  FlatBuffer::List list_of(unsigned field, std::size_t element_size) const;

  FlatBuffer* buffer_ = nullptr;
  std::size_t at_ = 0;
};

}  // namespace forestvm::frontend
