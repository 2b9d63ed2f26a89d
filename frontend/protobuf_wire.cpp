// See protobuf_wire.hpp. Nothing here is recursive and nothing takes memory.
#include "frontend/protobuf_wire.hpp"

#include <bit>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

constexpr std::size_t kMaxVarintBytes = 10;

/// Reads a varint at `at` and moves `at` behind it. Returns false, with `at` where it was, if there is none.
bool read_varint(std::span<const std::byte> bytes, std::size_t& at, std::uint64_t& value) {
  value = 0;
  for (std::size_t i = 0; i < kMaxVarintBytes && at + i < bytes.size(); ++i) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[at + i]);
    if (i + 1 == kMaxVarintBytes && byte > 1) return false;  // more than 64 bits
    value |= (byte & 0x7f) << 7 * i;
    if (byte < 0x80) {
      at += i + 1;
      return true;
    }
  }
  return false;
}

/// Reads a little-endian number of bytes.size() bytes, at most 8.
std::uint64_t read_fixed(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
  return value;
}

float float_from(std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }

Error wrong_type(const WireField& field, const char* expected) {
  return refused(byte_location(field.offset), "field {} has wire type {}, expected {}", field.number,
                 static_cast<int>(field.type), expected);
}

Result<void> check_type(const WireField& field, WireType type, const char* expected) {
  return field.type == type ? Result<void>() : wrong_type(field, expected);
}

/// Calls `receive` with the bits of each number of `size` bytes.
Result<void> visit_fixed(const WireField& field, WireType type, std::size_t size,
                         const std::function<Result<void>(std::uint64_t)>& receive) {
  if (field.type == type) return receive(field.bits);
  FVM_TRY(check_type(field, WireType::Bytes, "numbers"));
  if (field.bytes.size() % size != 0)
    return refused(byte_location(field.offset), "field {}: its packed numbers end within a number",
                   field.number);
  for (std::size_t at = 0; at < field.bytes.size(); at += size)
    FVM_TRY(receive(read_fixed(field.bytes.subspan(at, size))));
  return {};
}

}  // namespace

std::string byte_location(std::size_t offset) { return formatted("byte {}", offset); }

Error WireReader::error(std::string_view message) const {
  return refused(byte_location(message_.offset + at_), message);
}

Result<std::uint64_t> WireReader::varint() {
  std::uint64_t value = 0;
  if (!read_varint(message_.bytes, at_, value)) return error("a protobuf number that is damaged or cut off");
  return value;
}

Result<std::uint64_t> WireReader::fixed(std::size_t size) {
  if (message_.bytes.size() - at_ < size) return error("a protobuf number that is cut off");
  const std::uint64_t value = read_fixed(message_.bytes.subspan(at_, size));
  at_ += size;
  return value;
}

Result<WireField> WireReader::next() {
  FVM_CHECK(!at_end());
  FVM_ASSIGN(const std::uint64_t tag, varint());
  constexpr std::uint64_t kMaxFieldNumber = (std::uint64_t{1} << 29) - 1;
  if (tag >> 3 == 0 || tag >> 3 > kMaxFieldNumber)
    return error(formatted("protobuf field number {} does not exist", tag >> 3));
  WireField field;
  field.number = static_cast<std::uint32_t>(tag >> 3);
  field.type = static_cast<WireType>(tag & 7);
  field.offset = message_.offset + at_;
  switch (field.type) {
    case WireType::Varint: {
      FVM_ASSIGN(field.bits, varint());
      return field;
    }
    case WireType::Fixed64: {
      FVM_ASSIGN(field.bits, fixed(8));
      return field;
    }
    case WireType::Fixed32: {
      FVM_ASSIGN(field.bits, fixed(4));
      return field;
    }
    case WireType::Bytes: {
      FVM_ASSIGN(const std::uint64_t size, varint());
      const std::size_t left = message_.bytes.size() - at_;
      if (size > left)
        return error(formatted("protobuf field {} has {} bytes, but its message ends after {}", field.number,
                               size, left));
      field.offset = message_.offset + at_;
      field.bytes = message_.bytes.subspan(at_, static_cast<std::size_t>(size));
      at_ += field.bytes.size();
      return field;
    }
  }
  return error(formatted("protobuf wire type {} does not exist, or is a group", tag & 7));
}

Result<std::int64_t> integer_of(const WireField& field) {
  FVM_TRY(check_type(field, WireType::Varint, "a whole number"));
  return static_cast<std::int64_t>(field.bits);
}

Result<float> float_of(const WireField& field) {
  FVM_TRY(check_type(field, WireType::Fixed32, "a float"));
  return float_from(field.bits);
}

Result<double> double_of(const WireField& field) {
  FVM_TRY(check_type(field, WireType::Fixed64, "a double"));
  return std::bit_cast<double>(field.bits);
}

Result<std::span<const std::byte>> bytes_of(const WireField& field) {
  FVM_TRY(check_type(field, WireType::Bytes, "bytes"));
  return field.bytes;
}

Result<std::string_view> text_of(const WireField& field) {
  FVM_ASSIGN(const std::span<const std::byte> bytes, bytes_of(field));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!is_utf8(text)) return refused(byte_location(field.offset), "a text that is not UTF-8");
  return text;
}

Result<WireMessage> message_of(const WireField& field) {
  FVM_TRY(check_type(field, WireType::Bytes, "a message"));
  return WireMessage{field.bytes, field.offset};
}

Result<void> visit_integers(const WireField& field,
                            const std::function<Result<void>(std::int64_t)>& receive) {
  if (field.type == WireType::Varint) return receive(static_cast<std::int64_t>(field.bits));
  FVM_TRY(check_type(field, WireType::Bytes, "whole numbers"));
  for (std::size_t at = 0; at < field.bytes.size();) {
    std::uint64_t value = 0;
    if (!read_varint(field.bytes, at, value))
      return refused(byte_location(field.offset + at), "a packed number that is damaged or cut off");
    FVM_TRY(receive(static_cast<std::int64_t>(value)));
  }
  return {};
}

Result<void> visit_floats(const WireField& field, const std::function<Result<void>(float)>& receive) {
  return visit_fixed(field, WireType::Fixed32, sizeof(float),
                     [&](std::uint64_t bits) { return receive(float_from(bits)); });
}

Result<void> visit_doubles(const WireField& field, const std::function<Result<void>(double)>& receive) {
  return visit_fixed(field, WireType::Fixed64, sizeof(double),
                     [&](std::uint64_t bits) { return receive(std::bit_cast<double>(bits)); });
}

}  // namespace forestvm::frontend
