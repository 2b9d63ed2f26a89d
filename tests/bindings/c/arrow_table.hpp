// Struct arrays of Arrow's C data interface, made by hand. A release callback that is called fails the test: the
// library must not release what it is given.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <forestvm/forestvm.h>

namespace forestvm::test {

using Bytes = std::vector<std::byte>;

template <class Value>
Bytes bytes_of(const std::vector<Value>& values) {
  Bytes bytes(values.size() * sizeof(Value));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Returns the bits of `flags`, the first one as bit number `offset`. The bits before are set.
inline Bytes bits_of(const std::vector<bool>& flags, std::size_t offset = 0) {
  Bytes bits((offset + flags.size() + 7) / 8, std::byte{0});
  for (std::size_t i = 0; i < offset + flags.size(); ++i)
    if (i < offset || flags[i - offset]) bits[i / 8] |= std::byte{1} << (i % 8);
  return bits;
}

/// An array and its schema. Empty buffers whose numbers are in `absent` are passed as null pointers.
struct ArrowColumn {
  std::string format, name;
  std::vector<Bytes> buffers;
  std::unique_ptr<ArrowColumn> dictionary;
  std::vector<std::unique_ptr<ArrowColumn>> children;
  std::vector<const void*> buffer_pointers;
  std::vector<ArrowSchema*> child_schemas;
  std::vector<ArrowArray*> child_arrays;
  ArrowSchema schema{};
  ArrowArray array{};

  /// Fills in the two structs. The first buffer is the validity bits; if it is empty, no value is null.
  void describe(std::int64_t length, std::int64_t offset) {
    for (std::size_t i = 0; i < buffers.size(); ++i)
      buffer_pointers.push_back(i == 0 && buffers[0].empty() ? nullptr : buffers[i].data());
    for (const auto& child : children) {
      child_schemas.push_back(&child->schema);
      child_arrays.push_back(&child->array);
    }
    schema.format = format.c_str();
    schema.name = name.c_str();
    schema.n_children = static_cast<std::int64_t>(children.size());
    schema.children = child_schemas.data();
    schema.release = [](ArrowSchema*) { ADD_FAILURE() << "a schema is released"; };
    array.length = length;
    array.offset = offset;
    array.null_count = buffers.empty() || buffers[0].empty() ? 0 : -1;
    array.n_buffers = static_cast<std::int64_t>(buffers.size());
    array.buffers = buffer_pointers.data();
    array.n_children = schema.n_children;
    array.children = child_arrays.data();
    array.release = [](ArrowArray*) { ADD_FAILURE() << "an array is released"; };
    if (dictionary == nullptr) return;
    schema.dictionary = &dictionary->schema;
    array.dictionary = &dictionary->array;
  }
};
using ArrowColumnPtr = std::unique_ptr<ArrowColumn>;

inline ArrowColumnPtr arrow_column(std::string format, std::string name, std::vector<Bytes> buffers,
                                   std::size_t length, std::size_t offset = 0) {
  auto column = std::make_unique<ArrowColumn>();
  column->format = std::move(format);
  column->name = std::move(name);
  column->buffers = std::move(buffers);
  column->describe(static_cast<std::int64_t>(length), static_cast<std::int64_t>(offset));
  return column;
}

template <class Value>
std::string arrow_format() {
  if constexpr (std::is_same_v<Value, float>) return "f";
  if constexpr (std::is_same_v<Value, double>) return "g";
  if constexpr (std::is_integral_v<Value>) {
    const std::string letter(1, "csil"[sizeof(Value) == 8 ? 3 : sizeof(Value) / 2]);
    return std::is_signed_v<Value> ? letter : std::string(1, static_cast<char>(letter[0] - 'a' + 'A'));
  }
}

/// Returns a column of numbers; numbers that are nothing become nulls. `offset` values lie before them.
template <class Value>
ArrowColumnPtr arrow_numbers(std::string name, const std::vector<std::optional<Value>>& numbers,
                             std::size_t offset = 0) {
  std::vector<Value> values(offset, Value{77});
  std::vector<bool> valid;
  for (const auto& number : numbers) {
    values.push_back(number.value_or(Value{99}));
    valid.push_back(number.has_value());
  }
  return arrow_column(arrow_format<Value>(), std::move(name), {bits_of(valid, offset), bytes_of(values)},
                      numbers.size(), offset);
}

using Texts = std::vector<std::optional<std::string>>;

/// Returns a column of texts in Arrow's format u (Offset is int32) or U (int64).
template <class Offset>
ArrowColumnPtr arrow_texts(std::string name, const Texts& texts, std::size_t offset = 0) {
  std::string all = "before";
  std::vector<Offset> offsets(offset + 1, static_cast<Offset>(all.size()));
  std::vector<bool> valid;
  for (const auto& text : texts) {
    all += text.value_or("null");
    offsets.push_back(static_cast<Offset>(all.size()));
    valid.push_back(text.has_value());
  }
  const std::vector<char> characters(all.begin(), all.end());
  return arrow_column(sizeof(Offset) == 4 ? "u" : "U", std::move(name),
                      {bits_of(valid, offset), bytes_of(offsets), bytes_of(characters)}, texts.size(),
                      offset);
}

/// Returns a column of text views, with long texts in two buffers.
inline ArrowColumnPtr arrow_views(std::string name, const Texts& texts, std::size_t offset = 0) {
  Bytes views(16 * offset, std::byte{0x55});
  std::vector<char> buffers[2];
  std::vector<bool> valid;
  for (const auto& text : texts) {
    valid.push_back(text.has_value());
    char view[16] = {};
    const std::string value = text.value_or("");
    const auto size = static_cast<std::int32_t>(value.size());
    std::memcpy(view, &size, sizeof size);
    if (value.size() <= 12) {
      std::copy(value.begin(), value.end(), view + 4);
    } else {
      const auto buffer = static_cast<std::int32_t>(value.size() % 2);
      const auto at = static_cast<std::int32_t>(buffers[buffer].size());
      std::memcpy(view + 4, value.data(), 4);
      std::memcpy(view + 8, &buffer, sizeof buffer);
      std::memcpy(view + 12, &at, sizeof at);
      buffers[buffer].insert(buffers[buffer].end(), value.begin(), value.end());
    }
    const auto* const bytes = reinterpret_cast<const std::byte*>(view);
    views.insert(views.end(), bytes, bytes + sizeof view);
  }
  const std::vector<std::int64_t> sizes = {static_cast<std::int64_t>(buffers[0].size()),
                                           static_cast<std::int64_t>(buffers[1].size())};
  return arrow_column(
      "vu", std::move(name),
      {bits_of(valid, offset), std::move(views), bytes_of(buffers[0]), bytes_of(buffers[1]), bytes_of(sizes)},
      texts.size(), offset);
}

template <class Index>
ArrowColumnPtr arrow_dictionary(std::string name, const std::vector<std::optional<Index>>& indices,
                                ArrowColumnPtr values, std::size_t offset = 0) {
  ArrowColumnPtr column = arrow_numbers<Index>(std::move(name), indices, offset);
  column->dictionary = std::move(values);
  column->schema.dictionary = &column->dictionary->schema;
  column->array.dictionary = &column->dictionary->array;
  return column;
}

/// Returns a struct array of columns, of which it uses `length` rows from row `offset` on.
template <class... Columns>
ArrowColumnPtr arrow_table(std::size_t length, std::size_t offset, Columns... columns) {
  auto table = std::make_unique<ArrowColumn>();
  table->format = "+s";
  table->buffers.resize(1);
  (table->children.push_back(std::move(columns)), ...);
  table->describe(static_cast<std::int64_t>(length), static_cast<std::int64_t>(offset));
  return table;
}

inline fvm_rows arrow_rows(const ArrowColumnPtr& table) {
  return FVM_ARROW_ROWS(&table->array, &table->schema);
}

}  // namespace forestvm::test
